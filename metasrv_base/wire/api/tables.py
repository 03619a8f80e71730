"""Tables as clients see them: the spec they send, and what reads answer."""

from operator import not_
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, Strict

from metasrv_base.elements import states
from metasrv_base.engines import LSM
from metasrv_base.schema.scalars import PARTITIONS_MAX, JsonScalar
from metasrv_base.wire.api.coverage import IndexCoverage, IndexDuplicates
from metasrv_base.wire.api.tenants import TenantLimits, TenantSettings, TenantUsage
from metasrv_base.wire.model import Int64, Listed, PositiveInt64, WireModel

COLUMNS_MAX = 1024
INDEXES_MAX = 64
INDEX_COLUMNS_MAX = 16
REPLICAS_MAX = 15
"""Copies of a region; while one is replaced there is one more."""
REASON_CHARS_MAX = 500
DEFAULT_NUMBER: Literal["default"] = "default"
NumberOfCopies = PositiveInt64 | Literal["default"]

Identifier = Annotated[str, Field(json_schema_extra={"pattern": "^[A-Za-z_][A-Za-z0-9_-]{0,127}$"})]
"""A name. Judged by `table_rules`, not here, so that the answer is `invalid-identifier`."""

ElementState = Annotated[states.ElementState, Strict(False)]
"""The progress of a schema element in an online schema change, as text."""

RegionState = Literal["opening", "open", "lost"]
CopyRole = Literal["in-sync", "learner"]


class ColumnSpec(WireModel):
    """A column as a client asks for it."""

    name: Identifier
    type: str = Field(examples=["int64", "decimal(10,2)", "timestamp(ms)"])
    """boolean int8 int16 int32 int64 float32 float64 decimal(p,s) string binary date
    timestamp(s|ms|us|ns)"""
    nullable: bool = True
    """Whether it may be null. Columns of the primary key must say false."""
    default: JsonValue = None
    """The value of a row that does not name this column, in JSON form; null: none."""


class HashPartition(WireModel):
    """Rows are spread evenly over `count` regions."""

    by: Literal["hash"]
    columns: Listed[Identifier] = Field(min_length=1, max_length=COLUMNS_MAX)
    """Among the columns of the primary key."""
    count: int = Field(ge=1, le=PARTITIONS_MAX)


class RangePartition(WireModel):
    """Neighbouring rows stay together; n bounds make n+1 regions."""

    by: Literal["range"]
    columns: Listed[Identifier] = Field(min_length=1, max_length=COLUMNS_MAX)
    """Among the columns of the primary key."""
    bounds: Listed[Listed[JsonScalar]] = Field(min_length=1, max_length=PARTITIONS_MAX - 1)
    """Each the first key of a region: one value for each partition column, rising."""


PartitionSpec = Annotated[HashPartition | RangePartition, Field(discriminator="by")]


class TableShape(WireModel):
    """The properties of a table that a client may choose."""

    name: Identifier
    primary_key: Listed[Identifier] = Field(min_length=1, max_length=COLUMNS_MAX)
    """Names of non-nullable columns; their order is the order of the rows."""
    partition: PartitionSpec | None = None
    """Distribution of rows over regions; null: one region."""
    replicas: PositiveInt64 | None = None
    """Copies of each region, the leader's included. at most 15. Null: those of the
    placement."""
    min_in_sync: PositiveInt64 | None = None
    """Copies in sync, the leader's included, without which a region acknowledges no writes: at most
    `replicas`. Null: the placement's, or with `replicas` a majority of these."""
    options: dict[str, str] = Field(default_factory=dict)
    """`comment`, and a client's own, whose names hold a dot, as `{"app.owner": "ada"}`: they are
    kept and shown. Any other is refused (`unsupported`): nothing would act upon it."""
    colocation_columns: Listed[Identifier] | None = Field(
        default=None, min_length=1, max_length=COLUMNS_MAX
    )
    """Among the columns of the primary key: rows that are alike in them are in one region. The
    partition columns are among them."""
    storage_profile: Identifier | None = None
    """One of the placement's storage profiles: the engine of the regions and its options. Null: the
    first."""
    tablespace: Identifier | None = None
    """A tablespace of the catalog. Null: `default`."""
    placement: Identifier | None = None
    """The nodes that keep the regions. Null: the placement `default`."""


class TableSpec(TableShape):
    """A table to create."""

    if_not_exists: bool = False
    """Whether an equal table that exists already is a success; another one is 409
    `schema-conflict`."""
    columns: Listed[ColumnSpec] = Field(min_length=1, max_length=COLUMNS_MAX)


class ColumnBody(ColumnSpec):
    """A column as it is."""

    id: Int64
    """Permanent: a rename keeps it, and it is never used again in this table."""
    origin_default: JsonValue = None
    """Value read from a row that was written before the column was added, in JSON form; null:
    null."""
    replaces: Int64 | None = None
    """While a type changes: id of the column of the old type, in whose place it comes."""
    state: ElementState
    """Users know a column only while it is `public`."""


class IndexSpec(WireModel):
    """An index to create."""

    name: Identifier
    columns: Listed[Identifier] = Field(min_length=1, max_length=INDEX_COLUMNS_MAX)
    """Columns in the order of the index."""
    unique: bool = False
    """No two rows have the same values, unless one of them is null. It must contain the partition
    columns, or the table have one region."""
    if_not_exists: bool = False
    """An index of that name, over these columns and public, is answered as it is."""
    not_valid: bool = False
    """For a unique index. If rows have duplicate values, the index stays write-only and the
    response names the rows: new rows are checked, no query uses the index, and `validate` makes
    it public once the rows are corrected. If false, such an index is rolled back and 422 names
    the rows."""


class IndexBody(WireModel):
    """An index as it is."""

    id: Int64
    """Permanent, and never used again in this table."""
    name: Identifier
    columns: Listed[Identifier]
    """Columns in the order of the index."""
    unique: bool
    state: ElementState
    """Reads use an index only while it is `public`."""
    coverage: IndexCoverage | None = None
    """While it is filled."""
    duplicates: IndexDuplicates | None = None
    """Duplicate values, in the response to a request with `not_valid` whose index stayed
    write-only."""


class IndexList(WireModel):
    """Answer of `GET T/indexes`: all of them, also those on their way in or out."""

    indexes: Listed[IndexBody]
    catalog_version: Int64


class ConstraintBody(WireModel):
    """A condition that rows must satisfy, and its state."""

    id: Int64
    """Permanent, and never used again in this table."""
    name: Identifier
    kind: Literal["not-null", "check", "unique"]
    columns: Listed[Identifier]
    expression: str | None = None
    """Expression of a check."""
    holds: bool = True
    """Whether every row is known to satisfy it; new ones always do."""
    state: ElementState


class RegionCopyBody(WireModel):
    """One copy of a region, other than the leader's."""

    node: str
    root: str
    """Folder of its files, on that node's storage."""
    role: CopyRole
    """`in-sync`: it has every acknowledged row, and may be promoted. `learner`: it is sent all, and
    counts for nothing."""
    eligible: bool = Field(default=False, exclude_if=not_)
    """A learner that has every acknowledged row, since it left a set below the minimum: it leads if
    the leader, which is alone, is lost. Absent: it is not."""


class RegionLocation(WireModel):
    """Location of one region, as the catalog has it."""

    region_id: str
    """table_id << 32 | number, in decimal."""
    number: Int64
    leader: str | None
    """Node id; null while the region is lost."""
    followers: Listed[str] = ()
    """Nodes of all copies but the leader's, as in `copies`."""
    copies: Listed[RegionCopyBody] = ()
    """All copies but the leader's, at most one on a node."""
    epoch: Int64
    """Rises at every change of leader."""
    state: RegionState
    borrows: Listed[str] = ()
    """Storage roots of dead leaders that are still read from."""


class RegionRouteBody(RegionLocation):
    """Location of one region, and how its leader is reached."""

    address: str | None
    """URL of the leader; null if it is not registered."""
    copy_addresses: dict[str, str] = Field(default_factory=dict, exclude_if=not_)
    """Node id -> URL of the other copies in sync, which answer reads of a declared age. Absent:
    there are none."""


class RouteBody(WireModel):
    """Answer of `GET T/route`: all regions of a table, by number."""

    table_id: Int64
    version: Int64
    """Rises at every change of the route."""
    regions: Listed[RegionRouteBody]


class TableDefinition(TableShape):
    """A table as it is defined: the spec, and what the system gave it."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    id: Int64
    catalog: str
    schema_name: str = Field(alias="schema")
    columns: Listed[ColumnBody]
    """Columns in declared order; also those that are on their way in or out."""
    indexes: Listed[IndexBody] = ()
    constraints: Listed[ConstraintBody] = ()
    engine: str = LSM
    """The region engine: `lsm` keeps rows in files behind a log; the rows of a `memory` region end
    with the process that serves it, and the region is then `lost` until the table is truncated."""
    engine_options: dict[str, Int64] = Field(default_factory=dict)
    """Options of the engine, by name."""
    replicas: PositiveInt64 = 1
    """Copies of each region, the leader's included."""
    min_in_sync: PositiveInt64 = 1
    """Copies in sync, the leader's included, without which a region acknowledges no writes."""
    inherited: Listed[Literal["replicas", "min_in_sync"]] = ()
    """The numbers that the table does not name: they follow its placement."""
    version: Int64
    """Rises at every change of the table; the ETag shows it."""
    schema_version: Int64
    """Rises when an element is published; batches of rows carry it."""
    created_at: str
    """RFC 3339."""


class TableBody(TableDefinition):
    """Answer of `GET T`: the definition, and the regions."""

    catalog_version: Int64
    """The version of the catalog this was read at."""
    dropped_at: str | None = None
    """RFC 3339; null while the table stands."""
    regions: Listed[RegionRouteBody]


class RestoredTable(TableBody):
    """Answer of `POST T/restore`: the table as it is now."""

    not_restored: Listed[str] | None
    """Each part of the earlier version that did not come back, and why. The SDK has null where it
    had to wait longer than one request: its plan tells."""


class TableSummary(WireModel):
    """A table in a list."""

    id: Int64
    name: str
    version: Int64
    created_at: str
    """RFC 3339."""
    dropped_at: str | None = None
    """RFC 3339; null while the table stands."""


class TableList(WireModel):
    """A page of the tables of a schema, by name, all at one version of the catalog."""

    tables: Listed[TableSummary]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class SchemaSpec(WireModel):
    """A schema (database) to create."""

    name: Identifier
    if_not_exists: bool = False
    options: dict[str, str] = Field(default_factory=dict)


class SchemaBody(WireModel):
    """A schema as it is."""

    id: Int64
    catalog: str
    name: str
    options: dict[str, str]
    created_at: str
    """RFC 3339."""
    catalog_version: Int64


class SchemaList(WireModel):
    """A page of the schemas of a catalog, by name."""

    schemas: Listed[SchemaBody]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class CatalogSpec(WireModel):
    """A catalog (tenant) to create; it begins with the schema `public`."""

    name: Identifier
    if_not_exists: bool = False
    options: dict[str, str] = Field(default_factory=dict)
    settings: TenantSettings = TenantSettings()
    limits: TenantLimits = TenantLimits()


class CatalogBody(WireModel):
    """A catalog (tenant) as it is."""

    id: Int64
    name: str
    options: dict[str, str]
    settings: TenantSettings = TenantSettings()
    """All of them; `drop_retention_ms` null: that of the cluster."""
    limits: TenantLimits = TenantLimits()
    usage: TenantUsage = TenantUsage()
    created_at: str
    """RFC 3339."""
    catalog_version: Int64


class CatalogList(WireModel):
    """A page of the catalogs, by name."""

    catalogs: Listed[CatalogBody]
    catalog_version: Int64
    next_page_token: str | None = None
    """Opaque; null on the last page."""
