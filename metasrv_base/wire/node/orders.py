"""Orders from metasrv to a node: many in one request, from any procedures, answered one by one.

`POST /node/v1/orders`. Orders carry (term, number), rising within a term, and the region's epoch
(P3): a node refuses a term below the highest it has seen, and for a region any order
below the last it executed; a repeat is given the stored answer. Term, answer and tombstone are on
disk before the answer leaves. An order never raises the term: one that claims a higher term makes
the node ask the metasrv servers by a heartbeat, and is executed once their answer has that term.
"""

from functools import partial
from operator import eq, is_, not_
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from metasrv_base.engines import LSM
from metasrv_base.wire.model import Int32, Int64, PositiveInt64, RegionId, WireModel
from metasrv_base.wire.node.copies import OrderedRole, RegionCopies

HOLD_MS_MAX = 10_000
"""The longest time for which a leader makes writes wait for the next one."""
REQUEST_ORDERS_MAX = 4_096  # of one request, and of the answer to one heartbeat


class OriginColumn(WireModel):
    """A column that another one of another type has replaced."""

    id: Int32
    type: str


class RegionColumn(WireModel):
    """A column as a region knows it: by id and type, never by name."""

    id: Int32
    type: str
    nullable: bool
    origin_default: JsonValue = None
    """Value of a row that was written without the column, in JSON form; null: null."""
    origin_columns: list[OriginColumn] = Field(default_factory=list)
    """Columns that it replaces, the last of them first. The value in a row that was written without
    the column is that of the first of these with which the row was written, converted from each
    type to the next; the origin default if there is none."""


class LeaseGrant(WireModel):
    """A lease given with an order, as if the answer to an earlier heartbeat had granted it.

    The node counts it from before it sent that heartbeat. So only its own clock is used, and an
    order that arrives late grants no longer lease (docs/protocols.md P4).
    """

    incarnation: str
    heartbeat: Int64
    """Sequence number of the heartbeat it is counted from."""
    lease_ms: Int64


class OrderSender(WireModel):
    """The procedure and step on whose behalf the leader gives an order."""

    procedure: str
    step: str


class OrderBase(WireModel):
    number: Int64
    region_id: RegionId
    epoch: Int64
    sender: OrderSender | None = None
    """The procedure and its step; None if the leader brings a node in line with the catalog."""


class ServingOrder(OrderBase):
    """The copies of the region in orders to create and to open (docs/protocols.md P3.5).

    A node without support for copies refuses an order with `copies`, in either role, with 422
    `unsupported`: a leader that did not know of them would acknowledge rows that they lack.
    """

    role: OrderedRole = Field(default="leader", exclude_if=partial(eq, "leader"))
    """`leader`: serve the region. `copy`: make or open the root, follow the leader of this epoch,
    and serve no client."""
    copies: RegionCopies | None = Field(default=None, exclude_if=partial(is_, None))
    """All copies of the region, this one included. Null: the region has one copy."""


class CreateRegion(ServingOrder):
    """Make an empty region and serve it. Idempotent at one epoch; never after a drop.

    A region that is open here at a lower epoch is closed first. With the role `copy`, make an empty
    root, which has no row of the region yet.
    """

    op: Literal["create"] = "create"
    root: str
    table_id: Int64
    schema_version: Int64
    schema_floor: Int64
    columns: list[RegionColumn]
    key_columns: list[Int32]
    indexes: list[Int32] = Field(default_factory=list)
    """Ids of families that may hold entries."""
    replaces: list[str] = Field(default_factory=list)
    """Roots that the region leaves. Each that exists gets this epoch's fence before the new root
    serves, so that no process writes to it any more. Only the ids of applied statements are read
    from them, so that a statement that is sent again gets its first answer."""
    engine: str = LSM
    """The region engine. A node that does not have it refuses the order with 422 `unsupported`,
    whose facts list those that it `has`."""
    engine_options: dict[str, Int64] = Field(default_factory=dict)
    """Options of the engine; one that it does not have is refused with 422 `invalid-request`."""
    lease: LeaseGrant | None = None


class OpenRegion(ServingOrder):
    """Open over existing files and serve. With `borrows`, read those roots behind raised fences.

    Fails with `region-lost` if storage is gone or damaged; never makes an empty region. If the
    region already serves at this epoch, only the schema and the copies are updated.
    """

    op: Literal["open"] = "open"
    root: str
    table_id: Int64
    schema_version: Int64
    schema_floor: Int64
    columns: list[RegionColumn]
    key_columns: list[Int32]
    indexes: list[Int32] = Field(default_factory=list)
    dead_indexes: list[Int32] = Field(default_factory=list)
    borrows: list[str] = Field(default_factory=list)
    unannounced: list[str] = Field(default_factory=list)
    """Roots in `borrows` whose openers acknowledged nothing. If such a root, or a fence that its
    opener raised, is missing or damaged, no row is lost. A node that does not know this field
    reads these roots like the others."""
    engine: str = LSM
    """The engine, as in an order to create. A region of `memory` cannot be opened: its rows ended
    with the process that served it, and the order fails with `region-lost`."""
    engine_options: dict[str, Int64] = Field(default_factory=dict)
    lease: LeaseGrant | None = None


class SetSchema(OrderBase):
    """Bring the table's schema to an open region, and raise its floor (docs/protocols.md P6).

    After its answer the region refuses every batch and every read of a schema version below
    `schema_floor`, permanently. An order with an older schema than the region has changes nothing,
    floors never fall, and dead indexes stay dead.
    """

    op: Literal["schema"] = "schema"
    schema_version: Int64
    """The newest version that batches and reads of the region may have."""
    schema_floor: Int64
    """Not above `schema_version`."""
    columns: list[RegionColumn]
    indexes: list[Int32] = Field(default_factory=list)
    """Ids of families that may hold entries."""
    dead_indexes: list[Int32] = Field(default_factory=list)
    """Families that are removed now, with their files; their ids are never used again."""
    mark: str | None = Field(default=None, min_length=1, max_length=128)
    """Name of a mark, the snapshot of a reorg. It is opened at the row version at which the floor
    took effect; if the floor was in effect already, at that of this order."""
    reserves_version: bool = False
    """The mark is opened at a row version that no row has or will get. Rows that a job brings have
    this version: they replace older ones, and newer ones replace them."""
    close_marks: list[str] = Field(default_factory=list)
    """Marks that no reader needs any more."""


class CloseRegion(OrderBase):
    """Stop serving; files stay. Succeeds if the region is not open."""

    op: Literal["close"] = "close"


class DropRegion(OrderBase):
    """Stop serving, leave a tombstone, delete the folder. The id is never created here again while
    the node belongs to this cluster."""

    op: Literal["drop"] = "drop"
    root: str


class AdoptFiles(OrderBase):
    """Exchange the borrowed inputs for the files of one attempt, in one manifest."""

    op: Literal["adopt"] = "adopt"
    procedure: str
    attempt: str
    """Folder, relative to the region's root, that holds the files."""
    files: list["DataFile"]


class IngestFiles(OrderBase):
    """Take the sorted entries of an index that a job has made of the region's rows at a mark, or
    sorted rows that a job has brought from elsewhere.

    Every entry has the version of the row from which it was made, every row the version that a mark
    has reserved. Newer entries and rows take precedence, and so do deletions after the mark, whose
    tombstones are kept as long as the mark is open.
    """

    op: Literal["ingest"] = "ingest"
    procedure: str
    """The manifest names the procedure, so that its files are taken once."""
    attempt: str
    """Folder, relative to the region's root, that holds the files."""
    index: Int32
    """Id of the index whose entries the files hold; 0: rows."""
    mark: str
    """The mark as of which the rows were read, or which reserved their version; it must be open."""
    prepares: bool = False
    """The files are checked and made durable, but not taken yet."""
    files: list["DataFile"]
    unique_columns: list[Int32] = Field(default_factory=list)
    """Ids of the columns of a unique index, in its order; empty: the index is not unique. Entries
    that lose to newer ones are checked again: if the row still has the values, its entry is put
    anew. If two rows have the same values, no file is taken, and the order fails with 422
    `unique-violation`; its facts are an `Offenders`."""


class DiscardRoot(OrderBase):
    """Delete a folder that the region has left or borrowed, and that it no longer needs."""

    op: Literal["discard"] = "discard"
    root: str
    """Never the region's own root."""
    left: bool = Field(default=False, exclude_if=not_)
    """The folder is that of a copy that the route names no more. The node need not serve the
    region, and refuses with 409 `action-not-allowed` if it uses this very folder."""


class QuarantineRoot(OrderBase):
    """Put the folder of a region that no route names into quarantine: `quarantine/{name}@{at_ms}`
    under the node's root. Done if there is no such folder.

    Refused with 409 `action-not-allowed` if the region lives in it here, or reads it; with 409
    `stale-epoch` if its highest fence is not the one that the leader has judged; with 422
    `invalid-request` if it is not directly below the node's folder of regions. Orders given before
    this one are late from then on, so that none makes the folder again. An order to open the region
    in that root, or over it, puts the folder back first.
    """

    op: Literal["quarantine"] = "quarantine"
    root: str
    fence_epoch: PositiveInt64
    """Epoch of its highest fence, not above `epoch`."""
    fence_opening: PositiveInt64
    at_ms: Int64
    """Time of the order, by the leader's clock."""


class DeleteQuarantined(OrderBase):
    """Delete a folder from quarantine. Done if it is not there, or was put back. Refused with 422
    `invalid-request`, as an order to drop, if it holds what no region makes."""

    op: Literal["delete-quarantined"] = "delete-quarantined"
    root: str
    """The root that it was."""
    at_ms: Int64
    """Time of the order that put it there."""


class HandOver(OrderBase):
    """Make ready that another copy of the set leads next (docs/protocols.md P5.11). The leader
    stays the leader: another order names the next one.

    `prepare`: the leader, or a copy, writes what is in memory to files, if that is much, so that
    the next opening reads little. `hold`: the leader makes writes wait, for at most `hold_ms`, and
    the order is done once the copy has its whole log; it fails with 503 `not-ready`, and writes go
    on, if that takes too long. `resume`: writes that wait go on. Writes wait also for longer than
    the order takes: until the region is led elsewhere, or `hold_ms` are over.
    """

    op: Literal["hand-over"] = "hand-over"
    phase: Literal["prepare", "hold", "resume"]
    node: str | None = None
    """The node of the copy that leads next; null where the phase is not `hold`."""
    root: str | None = None
    """The root of that copy."""
    hold_ms: Int64 = Field(default=0, ge=0, le=HOLD_MS_MAX)


class DataFile(WireModel):
    """One immutable Parquet file of a region, as a manifest lists it."""

    name: str
    family: Int32 = 0
    """0: rows; else the id of the index whose entries it holds."""
    rows: Int64
    bytes: Int64
    min_key: str
    """A key at or below every key of the file, hexadecimal like every key in JSON. Long keys are
    cut."""
    max_key: str
    """A key at or above every key of the file."""
    min_version: Int64
    max_version: Int64
    checksum: str
    """Checksum of the file: crc32 as 8 hexadecimal digits."""
    footer_bytes: Int64
    footer_checksum: str
    """Checksum of the last `footer_bytes` of the file, like `checksum`."""
    row_checksum: str
    """Order-independent checksum of its rows: 16 hexadecimal digits."""


Order = Annotated[
    CreateRegion
    | OpenRegion
    | SetSchema
    | CloseRegion
    | DropRegion
    | AdoptFiles
    | IngestFiles
    | DiscardRoot
    | QuarantineRoot
    | DeleteQuarantined
    | HandOver,
    Field(discriminator="op"),
]


class OrderRequest(WireModel):
    cluster_id: str
    node_id: str
    term: Int64
    """Revision of the election that the sender won."""
    orders: list[Order] = Field(max_length=REQUEST_ORDERS_MAX)


class OrderError(WireModel):
    code: str
    facts: dict[str, Any]


class OrderResult(WireModel):
    number: Int64
    region_id: RegionId
    error: OrderError | None = None
    """The error; None if the order is done (now, or before by the same order)."""
    floor_version: Int64 | None = None
    """Row version at which the floor of a completed `schema` order took effect, or at which its
    mark stands. Batches of older schema versions have at most this row version."""


class OrderResponse(WireModel):
    results: list[OrderResult]
    """Results in the order of the request."""
