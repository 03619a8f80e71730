"""Messages between nodes and metasrv in registration and heartbeats (`/internal/v1`)."""

from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
from operator import attrgetter, is_, not_
from typing import Any, Self

from pydantic import Field, model_validator

from metasrv_base.engines import LSM
from metasrv_base.wire.model import INT64_END, Int64, PositiveInt64, RegionId, WireModel
from metasrv_base.wire.node.orders import REQUEST_ORDERS_MAX, Order

HEARTBEAT_REGIONS_MAX = 100_000
KEEPS_REPORTS = 3
"""The format of heartbeats from which on a leader may keep the report, and be sent changes."""
FOLDERS_MAX = 1_000  # named by a node that registers; the others are counted
ENGINES_MAX = 64  # named by a node that registers


class NodeResources(WireModel):
    cpu_cores: Int64
    memory_bytes: Int64
    memory_free_bytes: Int64
    disk_bytes: Int64
    disk_free_bytes: Int64


class RegisterRequest(WireModel):
    """`POST /internal/v1/nodes/{node_id}/register`, at every start of the process."""

    format: PositiveInt64 = 1
    cluster_id: str | None
    """The cluster on the node's disk; None if the node never belonged to one."""
    node_id: str
    role: str = "datanode"
    incarnation: str
    address: str
    """Base URL under which metasrv and clients reach it."""
    zone: str
    root: str
    """Absolute folder under which its regions lie."""
    version: str
    resources: NodeResources
    folders: list[str] = Field(default_factory=list, max_length=FOLDERS_MAX)
    """The folders of regions that are on its disk: the first 1,000 by name."""
    folder_count: Int64 = 0
    engines: list[str] = Field(default=[LSM], max_length=ENGINES_MAX)
    """Names of the region engines that it has; regions of another are never placed on it."""


class RegisterAnswer(WireModel):
    cluster_id: str
    term: Int64
    heartbeat_ms: Int64
    lease_ms: Int64
    settings_version: Int64
    metasrvs: list[str] = Field(default_factory=list)
    """URLs of the servers there are: one that is silent is not the only one to ask."""


class RegionStat(WireModel):
    """The state of one region that is open on a node."""

    region_id: RegionId
    epoch: Int64
    state: str
    """`opening`, `open` or `lost`; `restarted`: the node led the region, which has copies, and has
    started again: it leads no more before it is given a new epoch."""
    rows: Int64
    bytes: Int64
    wal_bytes: Int64
    files: Int64
    borrowed_bytes: Int64 = 0
    version: Int64
    """Highest row version it has given."""
    root: str | None = None
    """The folder it was ordered to serve from. Null: not said, so nobody orders to delete it."""
    copies_version: Int64 = Field(default=0, exclude_if=not_)
    """The version of the region's copies that the node was told last. 0: it was told of none."""


_digested = attrgetter(
    *("region_id", "epoch", "state", "rows", "bytes", "wal_bytes", "files", "borrowed_bytes"),
    *("version", "root", "copies_version"),
)


def digest_of(stats: Iterable[RegionStat]) -> int:
    """A digest of 64 bits over statistics of regions, in any order. That of two sets together is
    the exclusive or of theirs, so a change costs as much as it is long."""
    digest = 0
    for stat in stats:
        text = repr(_digested(stat)).encode()
        digest ^= int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
    return digest


class RegionColumns(WireModel):
    """Statistics of many regions by column, each with one value per region, in the same order. An
    object per region would cost the leader several times as much to parse and to keep."""

    region_id: list[RegionId] = Field(max_length=HEARTBEAT_REGIONS_MAX)
    epoch: list[Int64]
    state: list[str]
    rows: list[Int64]
    bytes: list[Int64]
    wal_bytes: list[Int64]
    files: list[Int64]
    borrowed_bytes: list[Int64]
    version: list[Int64]
    root: list[str | None]
    copies_version: list[Int64] = Field(default_factory=list, exclude_if=not_)
    """Empty: 0 for every region."""

    @classmethod
    def of(cls, stats: Iterable[RegionStat]) -> Self:
        rows = list(stats)
        columns = {name: [getattr(stat, name) for stat in rows] for name in cls.model_fields}
        if not any(columns["copies_version"]):
            columns["copies_version"] = []
        return cls.model_validate(columns)

    @property
    def has_one_length(self) -> bool:
        count = len(self.region_id)
        columns = (
            getattr(self, name)
            for name in type(self).model_fields
            if name != "copies_version" or self.copies_version
        )
        return all(len(column) == count for column in columns)

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if not self.has_one_length:
            raise ValueError("every column has one value per region")
        return self

    def stat(self, position: int) -> RegionStat:
        """The statistics of one region, made anew."""
        return RegionStat(
            region_id=self.region_id[position],
            epoch=self.epoch[position],
            state=self.state[position],
            rows=self.rows[position],
            bytes=self.bytes[position],
            wal_bytes=self.wal_bytes[position],
            files=self.files[position],
            borrowed_bytes=self.borrowed_bytes[position],
            version=self.version[position],
            root=self.root[position],
            copies_version=self.copies_version[position] if self.copies_version else 0,
        )


class RefusedStat(WireModel):
    """Batches and reads that regions refused because their schema version was below the floor."""

    table_id: Int64
    holder_id: str | None
    """Holder whose batches were refused; null: reads, and batches of clients."""
    count: int = Field(ge=1, lt=INT64_END)
    """Since the node started."""


class HeartbeatRequest(WireModel):
    """`PUT /internal/v1/nodes/{node_id}/heartbeat`. Heard in (incarnation, sequence) order."""

    format: PositiveInt64 = KEEPS_REPORTS
    cluster_id: str
    node_id: str
    incarnation: str
    sequence: int = Field(ge=0, lt=2**53)
    address: str
    zone: str
    version: str
    term: Int64
    """The highest term the node has seen."""
    resources: NodeResources
    regions: RegionColumns
    """All regions; or, with `changes_since`, those that have changed or are new."""
    refused: list[RefusedStat] = Field(default_factory=list, max_length=1_000)
    """Refusals: one entry for each table and holder."""
    changes_since: Int64 | None = Field(default=None, exclude_if=partial(is_, None))
    """The sequence of the heartbeat whose report these are changes of, which the leader has said
    that it keeps. Null: this is a whole report."""
    gone: list[RegionId] = Field(
        default_factory=list, max_length=HEARTBEAT_REGIONS_MAX, exclude_if=not_
    )
    """Regions of that report that the node has no more."""
    digest: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{16}$", exclude_if=partial(is_, None)
    )
    """`digest_of` all regions after the changes, in hexadecimal."""
    granted_by: Int64 | None = Field(default=None, exclude_if=partial(is_, None))
    """The sequence of the newest answer whose grants the node has taken one by one."""
    addresses_digest: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{16}$", exclude_if=partial(is_, None)
    )
    """The digest of the addresses that the node has of all nodes. Null: it needs none, since it has
    no region with copies."""


class Grant(WireModel):
    region_id: RegionId
    epoch: Int64


class HeartbeatAnswer(WireModel):
    """`lease_ms` is counted from before the heartbeat was sent, for every region in `grants`."""

    sequence: Int64
    term: Int64
    lease_ms: Int64
    settings_version: Int64
    catalog_version: Int64
    frozen_version: Int64 | None = None
    grants: list[Grant] = Field(default_factory=list)
    renews: Int64 | None = Field(default=None, exclude_if=partial(is_, None))
    """The sequence of an earlier answer, all of whose grants are granted again; `grants` is
    empty. Null: `grants` is all that is granted."""
    is_kept: bool = Field(default=False, exclude_if=not_)
    """Whether the next heartbeat may hold only what has changed since this one."""
    wants_whole: bool = Field(default=False, exclude_if=not_)
    """Whether the leader could not apply the changes: it granted nothing, and a whole report is
    to be sent at once."""
    addresses: dict[str, str] | None = Field(default=None, exclude_if=partial(is_, None))
    """The URLs of all registered nodes, by id. Null: those that the node has are the same."""
    instructions: list[Order] = Field(default_factory=list, max_length=REQUEST_ORDERS_MAX)
    """Instructions that bring the node in line with the catalog; executed like orders, under
    `term`."""


class SettingBody(WireModel):
    """A setting that operators can change while the service runs."""

    name: str
    value: Any
    """Null: as the program that it concerns was started."""
    version: Int64
    """Rises with every change; 0: it was never changed."""
    default: Any
    unit: str | None
    meaning: str
    changed_by: str | None
    changed_at: str | None
    """RFC 3339."""
