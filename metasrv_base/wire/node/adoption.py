"""Messages by which a node is adopted by a cluster that was restored from a backup of its own."""

from functools import partial
from operator import is_

from pydantic import Field

from metasrv_base.wire.model import INT64_END, Int32, Int64, PositiveInt64, RegionId, WireModel

INVENTORY_FORMAT = 1
INVENTORY_ROOTS_MAX = 1_000
"""Folders in one answer, as a rule: those of one region are never split."""


class AdoptRequest(WireModel):
    """`POST /node/v1/adopt`."""

    format: PositiveInt64 = 1
    cluster_id: str = Field(min_length=1, max_length=128)
    """The cluster that the node belongs to from now on."""
    from_cluster_id: str = Field(min_length=1, max_length=128)
    """The cluster that it must belong to now. A repeat is answered as the first one was."""
    node_id: str


class AdoptAnswer(WireModel):
    """Durable: this node takes no order of the old cluster any more, and serves no region."""

    node_id: str
    cluster_id: str
    incarnation: str
    root: str
    """Absolute folder under which its regions lie."""
    dropped: Int64
    """Regions that it was ordered to drop: it never opens them again."""


class FoundRoot(WireModel):
    """One folder of a region, as it lies on a node's disk."""

    region_id: RegionId
    root: str
    """Absolute."""
    fence_epoch: Int64 = 0
    """Epoch of its highest fence; 0: it has none."""
    fence_opening: Int64 = 0
    fenced_ms: Int64 | None = None
    """Time at which that fence was raised, by the node's clock; null: not known."""
    opener: str | None = None
    """The root of the leader that raised that fence: another one than this if the region moved on.
    Null: it had not finished raising it, so it never served."""
    manifest_epoch: Int64 | None = None
    """Epoch of its current manifest; null: it never had one, or `error`."""
    manifest_opening: Int64 = 0
    schema_version: Int64 = 0
    column_max: Int32 = 0
    """Highest id of a column that the manifest names."""
    columns: list[Int32] | None = None
    """Ids of the columns that the manifest names; null: the node does not say."""
    index_max: Int32 = 0
    """Highest id of an index that the manifest names, dead ones included."""
    indexes: list[Int32] = Field(default_factory=list)
    """Ids of the indexes that it may have entries of."""
    borrows: list[str] = Field(default_factory=list)
    """Roots of earlier leaders that it still reads."""
    error: str | None = None
    """Reason for which its manifest cannot be read, or all of it, so that `fence_epoch` is 0; with
    `log_ends`, its log either."""
    log_epoch: Int64 | None = Field(default=None, exclude_if=partial(is_, None))
    """Epoch of the last record in its files and its log; 0: it has none. Absent unless the request
    says `log_ends`."""
    log_sequence: Int64 | None = Field(default=None, exclude_if=partial(is_, None))


class QuarantinedRoot(WireModel):
    """A folder of a region that the node keeps in quarantine, by order of the leader."""

    folder: FoundRoot
    """The folder as it is, with the root that it was: an order to open that root puts it back."""
    path: str
    """The folder's path in quarantine."""
    at_ms: Int64
    """Time of the order that put it there, by the leader's clock."""
    bytes: Int64
    """Size of all its files."""


class Inventory(WireModel):
    """Answer of `GET /node/v1/inventory?first=&last=`: folders of regions in a range of ids."""

    format: PositiveInt64 = INVENTORY_FORMAT
    node_id: str
    cluster_id: str | None
    first: RegionId = "0"
    """The range that was asked for."""
    last: RegionId = str(INT64_END - 1)
    roots: list[FoundRoot]
    """Roots by region, then by name."""
    dropped: list[RegionId]
    """Regions of the range that it was ordered to drop."""
    quarantined: list[QuarantinedRoot] | None = None
    """Folders of the range that are in quarantine; null: the node knows of no quarantine."""
    next: RegionId | None = None
    """The region with which the next page begins; null: this is the last one."""

    @property
    def every_root(self) -> list[FoundRoot]:
        """All folders that the node has, by the roots that they are or were."""
        roots = {held.folder.root: held.folder for held in self.quarantined or ()}
        return [*({**roots, **{root.root: root for root in self.roots}}).values()]
