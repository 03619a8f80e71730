"""A batch of commands: all of them in one version of the catalog, or none.

A command is an object with one field, whose name says what is done and whose value says to what.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag

from metasrv_base.wire.api.changes import OPERATIONS_MAX, AlterOperation, RenameRequest
from metasrv_base.wire.api.placing.placements import (
    PlacementPatch,
    PlacementSpec,
    PlacingRename,
    TablespacePatch,
    TablespaceSpec,
)
from metasrv_base.wire.api.tables import CatalogSpec, Identifier, SchemaSpec, TableSpec
from metasrv_base.wire.model import Int64, Listed, WireModel

BATCH_BYTES_MAX = 16 << 20
"""The largest body of this route, in bytes."""
COMMANDS_MAX = 10_000


class Placed(WireModel):
    """The base of what names a schema."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )


class SchemaToCreate(Placed):
    """A schema, and the catalog in which it is made."""

    catalog: Identifier
    schema_spec: SchemaSpec = Field(alias="schema")


class TableToMake(Placed):
    """A table, and the schema in which it is made."""

    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: TableSpec


class CatalogToDrop(WireModel):
    catalog: Identifier
    cascade: bool = False
    """Whether all that it holds is dropped with it."""
    if_exists: bool = False
    """Whether an object that does not exist is a success; else it is 404, and the batch does
    nothing."""


class SchemaToDrop(Placed):
    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    cascade: bool = False
    """Whether its tables are dropped with it."""
    if_exists: bool = False


class TableToDrop(Placed):
    """The name is free at once; statements that have found the table end with it."""

    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: Identifier
    if_exists: bool = False


class TableToRename(RenameRequest, Placed):
    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: Identifier


class TableToAlter(Placed):
    """Options of a table, its comment among them: `set_options`. Any other operation is refused
    (`not-in-batch`): it goes through states."""

    catalog: Identifier
    schema_name: Identifier = Field(alias="schema")
    table: Identifier
    operations: Listed[AlterOperation] = Field(min_length=1, max_length=OPERATIONS_MAX)
    if_exists: bool = False


class PlacementToAlter(PlacementPatch):
    """The placement by its name, and what `PATCH` of it takes."""

    placement: Identifier


class PlacementToRename(PlacingRename):
    placement: Identifier


class PlacementToDrop(WireModel):
    placement: Identifier
    if_exists: bool = False


class TablespaceToCreate(WireModel):
    """A tablespace, and the catalog in which it is made."""

    catalog: Identifier
    tablespace: TablespaceSpec


class TablespaceToAlter(TablespacePatch):
    catalog: Identifier
    tablespace: Identifier


class TablespaceToRename(PlacingRename):
    catalog: Identifier
    tablespace: Identifier


class TablespaceToDrop(WireModel):
    catalog: Identifier
    tablespace: Identifier
    if_exists: bool = False


class CreatesCatalog(WireModel):
    create_catalog: CatalogSpec


class DropsCatalog(WireModel):
    drop_catalog: CatalogToDrop


class CreatesSchema(WireModel):
    create_schema: SchemaToCreate


class DropsSchema(WireModel):
    drop_schema: SchemaToDrop


class CreatesTable(WireModel):
    create_table: TableToMake


class DropsTable(WireModel):
    drop_table: TableToDrop


class RenamesTable(WireModel):
    rename_table: TableToRename


class AltersTable(WireModel):
    alter_table: TableToAlter


class CreatesPlacement(WireModel):
    create_placement: PlacementSpec


class AltersPlacement(WireModel):
    alter_placement: PlacementToAlter


class RenamesPlacement(WireModel):
    rename_placement: PlacementToRename


class DropsPlacement(WireModel):
    drop_placement: PlacementToDrop


class CreatesTablespace(WireModel):
    create_tablespace: TablespaceToCreate


class AltersTablespace(WireModel):
    alter_tablespace: TablespaceToAlter


class RenamesTablespace(WireModel):
    rename_tablespace: TablespaceToRename


class DropsTablespace(WireModel):
    drop_tablespace: TablespaceToDrop


class NotInBatch(WireModel):
    """Commands that a batch does not take (`not-in-batch`): they go through states, or read or
    move rows. The answer names each, and the request that does it."""

    create_index: JsonValue = None
    validate_index: JsonValue = None
    drop_index: JsonValue = None
    undrop_table: JsonValue = None
    truncate_table: JsonValue = None
    purge_table: JsonValue = None
    check_table: JsonValue = None
    import_table: JsonValue = None


TAKEN = {
    "create_catalog": CreatesCatalog,
    "drop_catalog": DropsCatalog,
    "create_schema": CreatesSchema,
    "drop_schema": DropsSchema,
    "create_table": CreatesTable,
    "drop_table": DropsTable,
    "rename_table": RenamesTable,
    "alter_table": AltersTable,
    "create_placement": CreatesPlacement,
    "alter_placement": AltersPlacement,
    "rename_placement": RenamesPlacement,
    "drop_placement": DropsPlacement,
    "create_tablespace": CreatesTablespace,
    "alter_tablespace": AltersTablespace,
    "rename_tablespace": RenamesTablespace,
    "drop_tablespace": DropsTablespace,
}
"""Field of a command -> its model."""
OTHER = "other"


def _tag(value: Any) -> str | None:
    """The field of a command; None: it has several, or one that nobody knows."""
    if isinstance(value, WireModel):
        fields = list(type(value).model_fields)
        return fields[0] if isinstance(value, tuple(TAKEN.values())) else OTHER
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    (field,) = value
    if field in TAKEN:
        return str(field)
    return OTHER if field in NotInBatch.model_fields else None


BatchCommandBody = Annotated[
    Annotated[CreatesCatalog, Tag("create_catalog")]
    | Annotated[DropsCatalog, Tag("drop_catalog")]
    | Annotated[CreatesSchema, Tag("create_schema")]
    | Annotated[DropsSchema, Tag("drop_schema")]
    | Annotated[CreatesTable, Tag("create_table")]
    | Annotated[DropsTable, Tag("drop_table")]
    | Annotated[RenamesTable, Tag("rename_table")]
    | Annotated[AltersTable, Tag("alter_table")]
    | Annotated[CreatesPlacement, Tag("create_placement")]
    | Annotated[AltersPlacement, Tag("alter_placement")]
    | Annotated[RenamesPlacement, Tag("rename_placement")]
    | Annotated[DropsPlacement, Tag("drop_placement")]
    | Annotated[CreatesTablespace, Tag("create_tablespace")]
    | Annotated[AltersTablespace, Tag("alter_tablespace")]
    | Annotated[RenamesTablespace, Tag("rename_tablespace")]
    | Annotated[DropsTablespace, Tag("drop_tablespace")]
    | Annotated[NotInBatch, Tag(OTHER)],
    Discriminator(
        _tag,
        custom_error_type="batch_command",
        custom_error_message=f"a command is an object with one field: {', '.join(TAKEN)}",
    ),
]


class BatchRequest(WireModel):
    """`POST /v1/batch`."""

    commands: Listed[BatchCommandBody] = Field(min_length=1, max_length=COMMANDS_MAX)
    """Commands in order: each sees what those before it have done."""


class BatchBody(WireModel):
    """The result of a batch."""

    applied: Listed[bool]
    """For each command, in order, whether it changed anything; false: with `if_exists` there was
    nothing, or with `if_not_exists` an equal object."""
    catalog_version: Int64 | None = None
    """The one version that the batch made; null: no command changed anything."""
