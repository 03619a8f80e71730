"""Snapshots of the catalog: each holds the whole catalog at one version, in parts.

The log begins above the oldest snapshot that is kept. A snapshot counts once the one key
`__catalog/snapshot/version` names it; parts that it does not name belong to one that is being
written, was not finished, or is being deleted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from keys.key import Key, Range
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import Column, TableInfo, TableRoute
from keys.packed import DEFLATED, deflated, inflated, packing_of
from keys.value import StoredModel, StoredPart

SNAPSHOTS_MAX = 64  # that are kept: 64 KiB of references at most


class SnapshotRef(StoredPart):
    """One snapshot that is whole."""

    version: int
    """Version of the catalog that it holds."""
    revision: int
    """Revision of the store at which that version was committed."""
    at_ms: int
    """Commit time of that version."""
    parts: int
    size_bytes: int
    """Stored bytes of all parts."""
    log_bytes: int
    """Stored bytes of the updates between the snapshot before and this one."""
    digest: str
    """SHA-256 of the stored parts, in order."""
    made_at_ms: int


class SnapshotVersion(StoredModel):
    """The snapshots that are kept. One transaction of the leader adopts another one."""

    kept: tuple[SnapshotRef, ...]
    """Rising by version; never empty. The log holds each update above the first of them."""

    @property
    def newest(self) -> SnapshotRef:
        return self.kept[-1]

    @property
    def floor(self) -> int:
        """The oldest version that can be read. Updates up to it are deleted, or will be."""
        return self.kept[0].version

    def nearest(self, version: int) -> SnapshotRef | None:
        """Returns the newest snapshot at or below *version*; None: it is below the floor."""
        return next((ref for ref in reversed(self.kept) if ref.version <= version), None)


@dataclass(frozen=True, slots=True)
class SnapshotVersionKey(Key[SnapshotVersion]):
    template: ClassVar[str] = "__catalog/snapshot/version"
    value_type: ClassVar[type[StoredModel]] = SnapshotVersion


class CatalogItem(StoredPart):
    what: Literal["catalog"] = "catalog"
    info: CatalogInfo
    leaving: bool = False
    """Whether it is being dropped with all it holds."""


class SchemaItem(StoredPart):
    what: Literal["schema"] = "schema"
    info: SchemaInfo
    revision: int | None
    """Store revision of its key; None: it is being dropped."""


class EarlierColumnsItem(StoredPart):
    """A set of columns that a table had. Those of one table come before it, the oldest first."""

    what: Literal["earlier_columns"] = "earlier_columns"
    table_id: int
    schema_version: int
    """Schema version of the table when its public columns became these."""
    catalog_version: int
    """The version of the catalog that made them so."""
    at_ms: int
    """Commit time of that version."""
    columns: tuple[Column, ...]


class TableItem(StoredPart):
    what: Literal["table"] = "table"
    info: TableInfo
    route: TableRoute
    catalog_version: int
    """The version that last changed either."""
    dropped_at_ms: int | None = None
    dropped_by: str | None = None
    columns_schema_version: int
    """Schema version of the table when its public columns became what they are."""
    columns_catalog_version: int
    """The version of the catalog that made them so."""
    columns_at_ms: int
    """Commit time of that version."""


class PlacementItem(StoredPart):
    what: Literal["placement"] = "placement"
    info: PlacementInfo


class TablespaceItem(StoredPart):
    what: Literal["tablespace"] = "tablespace"
    info: TablespaceInfo


SnapshotItem = Annotated[
    CatalogItem | SchemaItem | PlacementItem | TablespaceItem | EarlierColumnsItem | TableItem,
    Field(discriminator="what"),
]


class SnapshotPart(StoredModel):
    """A part of a snapshot: catalogs first, then schemas, placements and tablespaces, then living
    tables by name, then dropped tables by id.

    Stored as packing 2: its JSON deflated, with a checksum (keys/packed.py).
    """

    version: int
    part: int
    items: tuple[SnapshotItem, ...]

    def pack(self) -> bytes:
        return deflated(super().pack())

    @classmethod
    def unpack(cls, raw: bytes) -> bytes:
        return inflated(raw) if packing_of(raw, DEFLATED) == DEFLATED else raw


def sealed(version: int, part: int, items: Iterable[bytes]) -> bytes:
    """Returns the stored form of a part whose items are JSON already."""
    return deflated(_head(version, part) + b",".join(items) + b"]}")


def first_offset(version: int, part: int) -> int:
    """Returns the offset of the first item in the JSON of a part."""
    return len(_head(version, part))


def _head(version: int, part: int) -> bytes:
    return b'{"format":1,"version":%d,"part":%d,"items":[' % (version, part)


@dataclass(frozen=True, slots=True)
class SnapshotPartKey(Key[SnapshotPart]):
    """Padded, because parts are read in order."""

    template: ClassVar[str] = "__catalog/snapshot/{version:020}/{part:06}"
    value_type: ClassVar[type[StoredModel]] = SnapshotPart

    version: int
    part: int


EVERY_PART = Range(SnapshotPartKey.under().start, bytes(SnapshotVersionKey()))
"""The range of all parts of all snapshots: digits sort below the word `version`."""


class PartsDigest:
    """The digest of the stored parts of one snapshot, given in order."""

    def __init__(self) -> None:
        self._whole = sha256()

    def add(self, raw: bytes) -> None:
        self._whole.update(sha256(raw).digest())

    def __str__(self) -> str:
        return self._whole.hexdigest()
