"""The commands that statements of SQL are: bodies that the routes take, and names of objects.

Whatever is said here is said in the words of `metasrv_base/wire/api`: SQL is another way to write
a request, and has no meaning of its own.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from metasrv_base.wire.api.changes import AlterRequest, RenameRequest, UndropRequest
from metasrv_base.wire.api.placing.placements import (
    PlacementPatch,
    PlacementSpec,
    TablespacePatch,
    TablespaceSpec,
)
from metasrv_base.wire.api.tables import CatalogSpec, IndexSpec, SchemaSpec, TableSpec


@dataclass(frozen=True, slots=True)
class QualifiedTable:
    """A table; what is None is that of the session."""

    table: str
    schema: str | None = None
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class NameInCatalog:
    """A schema or a tablespace; None: the catalog of the session."""

    name: str
    catalog: str | None = None


@dataclass(frozen=True, slots=True)
class CreateTableStatement:
    table: QualifiedTable
    spec: TableSpec


@dataclass(frozen=True, slots=True)
class DropTableStatement:
    table: QualifiedTable
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTableStatement:
    table: QualifiedTable
    request: RenameRequest


@dataclass(frozen=True, slots=True)
class AlterTableStatement:
    table: QualifiedTable
    request: AlterRequest


@dataclass(frozen=True, slots=True)
class TruncateTableStatement:
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class UndropTableStatement:
    table: QualifiedTable
    request: UndropRequest


@dataclass(frozen=True, slots=True)
class CreateIndexStatement:
    table: QualifiedTable
    spec: IndexSpec


@dataclass(frozen=True, slots=True)
class ValidateIndexStatement:
    table: QualifiedTable
    index: str


@dataclass(frozen=True, slots=True)
class DropIndexStatement:
    table: QualifiedTable
    index: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchemaStatement:
    catalog: str | None
    spec: SchemaSpec


@dataclass(frozen=True, slots=True)
class DropSchemaStatement:
    schema: NameInCatalog
    cascade: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateCatalogStatement:
    spec: CatalogSpec


@dataclass(frozen=True, slots=True)
class DropCatalogStatement:
    catalog: str
    cascade: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreatePlacementStatement:
    spec: PlacementSpec


@dataclass(frozen=True, slots=True)
class AlterPlacementStatement:
    placement: str
    patch: PlacementPatch


@dataclass(frozen=True, slots=True)
class RenamePlacementStatement:
    placement: str
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropPlacementStatement:
    placement: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateTablespaceStatement:
    catalog: str | None
    spec: TablespaceSpec


@dataclass(frozen=True, slots=True)
class AlterTablespaceStatement:
    tablespace: NameInCatalog
    patch: TablespacePatch


@dataclass(frozen=True, slots=True)
class RenameTablespaceStatement:
    tablespace: NameInCatalog
    new_name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTablespaceStatement:
    tablespace: NameInCatalog
    if_exists: bool = False


Listing: TypeAlias = Literal[
    "catalogs", "schemas", "tables", "indexes", "placements", "tablespaces"
]


@dataclass(frozen=True, slots=True)
class Show:
    """A list of objects; `of` is what holds them, as far as it is named."""

    listing: Listing
    of: QualifiedTable | NameInCatalog | None = None
    """The holder: of indexes their table, of tables their schema, of schemas and tablespaces the
    name of their catalog."""


@dataclass(frozen=True, slots=True)
class ShowCreateTable:
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class DescribeTable:
    table: QualifiedTable


@dataclass(frozen=True, slots=True)
class ViewOrder:
    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SelectView:
    """Rows of a view of the information schema."""

    view: str
    columns: tuple[str, ...] | None = None
    """The columns to show; None for all."""
    where: str | None = None
    """A condition, as it is written (metasrv_base/expressions/)."""
    order_by: tuple[ViewOrder, ...] = ()
    """Empty: in the order of the view."""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """The statements up to COMMIT are one batch."""


@dataclass(frozen=True, slots=True)
class Commit:
    pass


Change: TypeAlias = (
    CreateTableStatement
    | DropTableStatement
    | RenameTableStatement
    | AlterTableStatement
    | TruncateTableStatement
    | UndropTableStatement
    | CreateIndexStatement
    | ValidateIndexStatement
    | DropIndexStatement
    | CreateSchemaStatement
    | DropSchemaStatement
    | CreateCatalogStatement
    | DropCatalogStatement
    | CreatePlacementStatement
    | AlterPlacementStatement
    | RenamePlacementStatement
    | DropPlacementStatement
    | CreateTablespaceStatement
    | AlterTablespaceStatement
    | RenameTablespaceStatement
    | DropTablespaceStatement
)
CHANGES: tuple[type[Change], ...] = get_args(Change)


@dataclass(frozen=True, slots=True)
class Explain:
    """The plan of a change, which is not carried out."""

    change: Change


Reads: TypeAlias = Show | ShowCreateTable | DescribeTable | SelectView
Command: TypeAlias = Change | Reads | Explain | Begin | Commit
