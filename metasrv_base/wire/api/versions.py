"""The history of the catalog as clients see it: what each request changed, by which versions."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from metasrv_base.wire.api.changes import AlterOperation
from metasrv_base.wire.api.procedures import ResourceBody
from metasrv_base.wire.api.tables import ColumnBody, IndexSpec
from metasrv_base.wire.api.transitions import ShiftBody
from metasrv_base.wire.model import Int64, Listed, WireModel


class CreatedObject(WireModel):
    """A catalog, schema, table, placement or tablespace came."""

    op: Literal[
        "create_catalog", "create_schema", "create_table", "create_placement", "create_tablespace"
    ]


class DroppedObject(WireModel):
    """One of these went. A table can be undropped until it is purged."""

    op: Literal["drop_catalog", "drop_schema", "drop_table", "drop_placement", "drop_tablespace"]


class AlteredObject(WireModel):
    """A placement or a tablespace has other properties."""

    op: Literal["alter_placement", "alter_tablespace"]
    fields: Listed[str]
    """The names of these."""


class RenamedObject(WireModel):
    """A placement or a tablespace bears another name."""

    op: Literal["rename_placement", "rename_tablespace"]
    new_name: str
    """The full name; the resource has the one before."""


class AlteredCatalog(WireModel):
    """Settings or limits of a catalog changed: those that differ, as they are now."""

    op: Literal["alter_catalog"]
    settings: dict[str, JsonValue]
    limits: dict[str, JsonValue]


class UndroppedTable(WireModel):
    op: Literal["undrop_table"]


class PurgedTable(WireModel):
    """A dropped table was deleted for good."""

    op: Literal["purge_table"]


class RenamedTable(WireModel):
    op: Literal["rename_table"]
    new_name: str
    """The full name, `catalog.schema.table`; the resource has the one before."""


class CreatedIndex(WireModel):
    op: Literal["create_index"]
    index: IndexSpec


class DroppedIndex(WireModel):
    op: Literal["drop_index"]
    name: str


class MovedRegions(WireModel):
    """Regions have another leader, another folder or another state: a failover, a truncate."""

    op: Literal["move_regions"]
    regions: Listed[Int64]
    """Their numbers."""


IndexOperation = Annotated[CreatedIndex | DroppedIndex, Field(discriminator="op")]
CatalogOperation = Annotated[
    CreatedObject
    | DroppedObject
    | AlteredCatalog
    | AlteredObject
    | RenamedObject
    | UndroppedTable
    | PurgedTable
    | RenamedTable
    | CreatedIndex
    | DroppedIndex
    | MovedRegions
    | AlterOperation,
    Field(discriminator="op"),
]


class ChangedObject(WireModel):
    """One operation, and the object that it changed."""

    resource: ResourceBody
    operation: CatalogOperation
    text: str
    """The same for people."""


class StatementBody(WireModel):
    """A request as it was sent, without its headers."""

    text: str
    """`{method, path, query, body}` as JSON; at most 4,096 bytes of it."""
    bytes: Int64 | None = None
    """Length of the whole, where `text` is its beginning; null: `text` is whole."""
    sha256: str | None = None
    """Digest of the whole, where `text` is its beginning."""


class CatalogChange(WireModel):
    """All that one request did to the catalog, with all versions that it made; with `transitions`,
    one version."""

    version: Int64
    """The last version that it made."""
    first_version: Int64
    versions: Int64
    """Number of versions that it made."""
    committed_at: str
    """RFC 3339; commit of the last version."""
    by: str | None
    """The principal; null: the bootstrap, or a log of an earlier format."""
    request_id: str | None
    procedure_id: str | None
    statement: StatementBody | None
    """Null for the bootstrap, and where its first version is below the oldest one kept."""
    operations: Listed[ChangedObject]
    """Differences that show now; empty: it was undone, or shows nothing yet. At most 100."""
    operations_total: Int64
    transitions: Listed[ShiftBody]
    """Elements that changed their state; only with `transitions`. At most 100."""
    text: str
    """All of it in one line."""


class VersionList(WireModel):
    """A page of the history, the newest change first."""

    changes: Listed[CatalogChange]
    catalog_version: Int64
    """The version that all pages of this list end with."""
    oldest_version: Int64
    """The history of versions above it is kept."""
    next_page_token: str | None = None
    """Opaque; null on the last page."""


class SchemaVersionBody(WireModel):
    """A set of columns of a table, and since when users saw it."""

    schema_version: Int64
    """Schema version of the table when its columns became these."""
    catalog_version: Int64
    """The version of the catalog that made them so."""
    committed_at: str
    """RFC 3339; commit of that version."""
    columns: Listed[ColumnBody]


class TableVersionList(VersionList):
    """A page of the history of one table, the newest change first."""

    table_id: Int64
    schema_id: Int64
    schema_versions: Listed[SchemaVersionBody]
    """The sets of columns that it had, the newest first: at most 100, also below
    `oldest_version`. On the first page alone."""


class TableAt(WireModel):
    """A table at one version of the catalog."""

    version: Int64
    committed_at: str
    """RFC 3339; commit of that version of the catalog."""
    name: str
    """The full name that it bore."""
    table_version: Int64
    schema_version: Int64


class TableDiff(WireModel):
    """Answer of `GET T/diff`: what makes the table of `from` into the table of `to`."""

    table_id: Int64
    before: TableAt
    after: TableAt
    operations: Listed[AlterOperation]
    """Operations in order, as `POST T/alter` takes them."""
    indexes: Listed[IndexOperation]
    """Operations as `POST T/indexes` and `DELETE T/indexes/{index}` make them."""
    text: Listed[str]
    """Each difference for people."""
