"""Snapshots of the catalog and pins of its history, as operators and readers ask for them."""

from pydantic import Field

from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

PIN_S_MAX = 86_400


class SnapshotRequestBody(WireModel):
    """`POST /v1/catalog/snapshots`."""

    drop_history: bool = False
    """Whether the log below the snapshot goes at once, as far as nothing pins it, instead of when
    the settings `catalog_history_ms` and `catalog_history_bytes_max` allow it."""


class SnapshotBody(WireModel):
    """The state of the log after a request for a snapshot."""

    version: Int64
    """Version of the newest snapshot."""
    made: bool
    """Whether a snapshot was written; if not, there was one of this version."""
    oldest_version: Int64
    """The oldest version of the catalog that is still stored."""
    deleted: Int64
    """Keys that were deleted: updates, and parts of older snapshots."""


class PinRequest(WireModel):
    """`POST /v1/catalog/pins`: keeps a version until it expires; sent again, it is renewed."""

    name: str = Field(max_length=128)
    version: PositiveInt64
    """A version that is stored, and not below the one pinned by that name before."""
    reason: str = Field(min_length=1, max_length=500)
    expires_in_s: int = Field(default=600, ge=1, le=PIN_S_MAX)
    """From now on."""


class CatalogPinBody(WireModel):
    """One reason to keep the log: a pin, a holder of a schema lease, or a procedure."""

    what: str
    """The reason, as `pin nightly`, `holder fe-1`, `procedure 019aa5d3-...`."""
    version: Int64
    """The log keeps this version and all that follow."""
    since: str
    """RFC 3339."""
    reason: str
    expires_at: str | None
    """RFC 3339; null: it is over when what needs it is."""


class RevisionPinBody(WireModel):
    """A reader of many keys at one revision: etcd is not compacted above it."""

    what: str
    """The reader, as `a backup`."""
    server: str
    """The server that reads."""
    revision: Int64
    """A revision of etcd: of all keys that it serves."""
    since: str
    """RFC 3339."""
    expires_at: str
    """RFC 3339; its reader renews it, but not for longer than an hour in all."""


class PinList(WireModel):
    """Answer of `GET /v1/catalog/pins`."""

    pins: Listed[CatalogPinBody]
    """The oldest version first."""
    revisions: Listed[RevisionPinBody] = ()
    """The oldest revision first."""
    oldest_version: Int64
    """The oldest version of the catalog that is still stored."""
    snapshot_version: Int64
    """Version of the newest snapshot; 0: there is none."""
    catalog_version: Int64
