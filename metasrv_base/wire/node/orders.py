"""Orders from metasrv to a node: many in one request, from any procedures, answered one by one.

`POST /node/v1/orders`. Orders carry (term, number), rising within a term, and the region's epoch
(P3): a node refuses a term below the highest it has seen, and for a region any order
below the last it executed; a repeat is given the stored answer. Term, answer and tombstone are on
disk before the answer leaves. An order never raises the term: one that claims a higher term makes
the node ask the metasrv servers by a heartbeat, and is executed once their answer has that term.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from metasrv_base.engines import LSM
from metasrv_base.wire.model import Int32, Int64, RegionId, WireModel

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
    """Columns that it replaces, the last of them first. What a row has that was written without it:
    of the first of these that it was written with, the value, converted from each type to the next;
    the origin default if with none."""


class LeaseGrant(WireModel):
    """A lease given with an order, as if it had stood in the answer to an earlier heartbeat.

    The node counts it from before it sent that heartbeat, so no clock but its own is used and an
    order that arrives late grants nothing too long (docs/protocols.md P4).
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
    """None: the leader brings a node in line with the catalog."""


class CreateRegion(OrderBase):
    """Make an empty region and serve it. Idempotent at one epoch; never after a drop.

    At a higher epoch than the one it is open at, it is closed here first.
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
    """Roots that the region leaves: each that is there gets this epoch's fence before the new one
    serves, so that nobody writes to it any more. Nothing in them is read."""
    engine: str = LSM
    """The region engine. A node that does not have it refuses the order with 422 `unsupported`,
    whose facts list those that it `has`."""
    engine_options: dict[str, Int64] = Field(default_factory=dict)
    """Options of the engine; one that it does not have is refused with 422 `invalid-request`."""
    lease: LeaseGrant | None = None


class OpenRegion(OrderBase):
    """Open over existing files and serve. With `borrows`, read those roots behind raised fences.

    Fails with `region-lost` where storage is gone or damaged; never makes an empty region. To a
    region that serves at this epoch already it brings the schema alone.
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
    """Roots in `borrows` whose openers acknowledged nothing: neither they nor the fences that
    their openers raised say anything about lost rows. A node that does not know this field reads
    them like the others."""
    engine: str = LSM
    """As in an order to create. A region of `memory` cannot be opened: its rows ended with the
    process that served it, and the order fails with `region-lost`."""
    engine_options: dict[str, Int64] = Field(default_factory=dict)
    lease: LeaseGrant | None = None


class SetSchema(OrderBase):
    """Bring the table's schema to an open region, and raise its floor (docs/protocols.md P6).

    From the answer on, and for ever, the region refuses every batch and every read of a schema
    version below `schema_floor`. What it knows only grows: an order that is older than another
    changes nothing, floors never fall, and dead indexes are dead for good.
    """

    op: Literal["schema"] = "schema"
    schema_version: Int64
    """The newest version that the region may be asked at."""
    schema_floor: Int64
    """Not above `schema_version`."""
    columns: list[RegionColumn]
    indexes: list[Int32] = Field(default_factory=list)
    """Ids of families that may hold entries."""
    dead_indexes: list[Int32] = Field(default_factory=list)
    """Families that go now, with their files, and whose ids are never taken again."""
    mark: str | None = Field(default=None, min_length=1, max_length=128)
    """Name of a mark that is opened at the moment when the floor took hold: a reorg's snapshot. If
    the floor stood already, at the moment of this order."""
    reserves_version: bool = False
    """The mark is opened at a version that no row has or will be given: rows that a job brings may
    bear it. They replace what is older, and lose to whatever is written from now on."""
    close_marks: list[str] = Field(default_factory=list)
    """Marks that nobody reads as of any more."""


class CloseRegion(OrderBase):
    """Stop serving; files stay. Closing what is not open is done."""

    op: Literal["close"] = "close"


class DropRegion(OrderBase):
    """Stop serving, leave a tombstone, delete the folder. The id is never created here again."""

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

    Every entry bears the version of the row it was read from, every row that of a mark that has
    reserved it; they lose to whatever is newer: a deletion behind the mark, too, for its tombstone
    is kept as long as the mark is open.
    """

    op: Literal["ingest"] = "ingest"
    procedure: str
    """Named by the manifest: files are taken once."""
    attempt: str
    """Folder, relative to the region's root, that holds the files."""
    index: Int32
    """0: rows."""
    mark: str
    """The mark that the rows were read at, or that their version is of; it must be open."""
    prepares: bool = False
    """The files are looked at and made durable, and nothing is taken yet."""
    files: list["DataFile"]
    unique_columns: list[Int32] = Field(default_factory=list)
    """Ids of the columns of a unique index, in its order; none: it is not unique. Entries that lose
    to newer ones are looked at again: whose row still has the values is put anew. Where two rows
    have them, nothing is taken, and the order fails with 422 `unique-violation`; its facts are an
    `Offenders`."""


class DiscardRoot(OrderBase):
    """Delete a folder that the region has left, or has borrowed, and does not need any more."""

    op: Literal["discard"] = "discard"
    root: str
    """Never the region's own root."""


class DataFile(WireModel):
    """One immutable Parquet file of a region, as a manifest lists it."""

    name: str
    family: Int32 = 0
    """0: rows; else the id of the index whose entries it holds."""
    rows: Int64
    bytes: Int64
    min_key: str
    """Hexadecimal, like every key in JSON. At or below every key of the file: long keys are cut."""
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
    """Order-independent, of its rows: 16 hexadecimal digits."""


Order = Annotated[
    CreateRegion
    | OpenRegion
    | SetSchema
    | CloseRegion
    | DropRegion
    | AdoptFiles
    | IngestFiles
    | DiscardRoot,
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
    """None: done (now, or before by the same order)."""
    floor_version: Int64 | None = None
    """Row version at which the floor of a completed `schema` order took effect, or at which its
    mark stands. Batches of older schema versions have at most this row version."""


class OrderResponse(WireModel):
    results: list[OrderResult]
    """In the order of the request."""
