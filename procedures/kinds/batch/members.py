"""The commands of a batch as its record holds them: each is the state of the kind that does it
alone, resolved to ids.

To let batches take another kind, add its row to MEMBERS: the command that it comes to, and nothing
else. It must take effect in one version.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.log import Entry, TableAltered
from keys.model.placing.placements import PlacementKey
from keys.model.placing.tablespaces import TablespaceKey
from keys.model.records import ClientRequirements, Lock
from keys.model.tables import TableInfoKey, TableNameKey
from keys.value import StoredPart
from metasrv_base.errors import NotFound
from procedures.commands.command import CatalogCommand
from procedures.commands.free_commands import (
    FreeCatalogCommand,
    FreeSchemaCommand,
    FreeTableCommand,
    NamedKey,
    UnchangedCommand,
)
from procedures.commands.in_order import BatchCommand
from procedures.commands.namespace_commands import CreateCatalogCommand, CreateSchemaCommand
from procedures.commands.table_commands import CreateTableCommand, RenameTableCommand
from procedures.kinds.alter.alter_operations import Operation, edited
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable
from procedures.kinds.batch.placing_members import (
    PLACING_KINDS,
    PLACING_MEMBERS,
    Make,
    placing_key,
)
from procedures.kinds.namespaces.create_catalog import CREATE_CATALOG, CreateCatalog
from procedures.kinds.namespaces.create_schema import CREATE_SCHEMA, CreateSchema
from procedures.kinds.namespaces.drop_catalog import DROP_CATALOG, DropCatalog
from procedures.kinds.namespaces.drop_schema import DROP_SCHEMA, DropSchema
from procedures.kinds.tables.create_table import CREATE_TABLE, CreateTable
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.kinds.tables.rename_table import RENAME_TABLE, RenameTable
from procedures.locking.locks import (
    catalog_key,
    exclusive,
    in_schema,
    name_key,
    placement_key,
    schema_key,
    shared,
    tablespace_key,
)
from procedures.machine import Kind, ProcedureState
from procedures.steps.requirements import require_same_table


class Change(StoredPart):
    """A command that changes something."""

    member: Literal["change"] = "change"
    kind: str
    """The kind of procedure that does it alone."""
    state: dict[str, Any]
    """The state of that kind as it is submitted."""

    @classmethod
    def of(cls, kind: str, state: ProcedureState) -> Self:
        change = cls(kind=kind, state=state.model_dump(mode="json"))
        change.__dict__["decoded"] = state  # what the property would make, 0.2 ms later
        return change

    @cached_property
    def decoded(self) -> ProcedureState:
        """`state` as its model, made once: it is asked for locks, for the command and for regions.
        No field, so it is neither stored nor compared."""
        state: ProcedureState = MEMBERS[self.kind][0].state.model_validate(self.state)
        return state


class Miss(StoredPart):
    """A command that was found to have nothing to do: with `if_exists` nothing bears the name, with
    `if_not_exists` an equal object does."""

    member: Literal["miss"] = "miss"
    kind: str
    name: str
    """Parts of the name, with dots between."""
    id: int | None
    """The object that bears the name; None: none does."""


Member = Annotated[Change | Miss, Field(discriminator="member")]


@dataclass(frozen=True, slots=True)
class SetOptionsCommand(CatalogCommand):
    """Options of a table, its comment among them."""

    name: TableNameKey
    table_id: int
    """The table that the name resolved to."""
    operations: tuple[Operation, ...]

    def keys(self) -> tuple[Key[Any], ...]:
        return (TableInfoKey(self.table_id), self.name)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        require_same_table(_same(self.table_id), self.name, view.get(self.name))
        info = view.get(TableInfoKey(self.table_id))
        if info is None:
            raise NotFound("table-not-found", table_id=self.table_id)
        new = edited(info, self.operations)
        return (TableAltered(info=new.model_copy(update={"version": info.version + 1})),)


def _create_catalog(state: CreateCatalog, by: str) -> BatchCommand:
    return CreateCatalogCommand(state.info, state.if_not_exists, state.default_schema)


def _drop_catalog(state: DropCatalog, by: str) -> BatchCommand:
    return FreeCatalogCommand(state.name, state.catalog_id, state.cascade, by)


def _create_schema(state: CreateSchema, by: str) -> BatchCommand:
    return CreateSchemaCommand(state.info, state.if_not_exists)


def _drop_schema(state: DropSchema, by: str) -> BatchCommand:
    return FreeSchemaCommand(state.catalog, state.name, state.schema_id, state.cascade, by)


def _create_table(state: CreateTable, by: str) -> BatchCommand:
    """One that came to bear the name since is a conflict, also with `if_not_exists`: regions were
    placed for this one."""
    return CreateTableCommand(state.info, state.route, placing=state.placing)


def _drop_table(state: DropTable, by: str) -> BatchCommand:
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    return FreeTableCommand(name, state.table_id, by)


def _rename_table(state: RenameTable, by: str) -> BatchCommand:
    return RenameTableCommand(
        TableNameKey(state.catalog, state.schema_name, state.name),
        TableNameKey(state.catalog, state.new_schema, state.new_name),
        state.table_id,
        _same(state.table_id),
        state.other_id,
    )


def _alter_table(state: AlterTable, by: str) -> BatchCommand:
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    return SetOptionsCommand(name, state.table_id, state.operations)


_MEMBERS: tuple[tuple[Kind[Any], Make], ...] = (
    (CREATE_CATALOG, _create_catalog),
    (DROP_CATALOG, _drop_catalog),
    (CREATE_SCHEMA, _create_schema),
    (DROP_SCHEMA, _drop_schema),
    (CREATE_TABLE, _create_table),
    (DROP_TABLE, _drop_table),
    (RENAME_TABLE, _rename_table),
    (ALTER_TABLE, _alter_table),
    *PLACING_MEMBERS,
)
MEMBERS: Mapping[str, tuple[Kind[Any], Make]] = {kind.name: (kind, make) for kind, make in _MEMBERS}
"""Kinds of which a batch takes commands."""


def _same(table_id: int) -> ClientRequirements:
    """Requires that a name still means the table that it resolved to."""
    return ClientRequirements(submitted_by="", request_id="", statement={}, table_id=table_id)


def command_of(member: Change | Miss, by: str) -> BatchCommand:
    """Returns the command of a member. *by* is the id of the batch."""
    if isinstance(member, Miss):
        return UnchangedCommand(_name_key(member), member.id)
    return MEMBERS[member.kind][1](member.decoded, by)


def locks_of(member: Change | Miss) -> tuple[Lock, ...]:
    """The locks that the command would take alone."""
    if isinstance(member, Change):
        return MEMBERS[member.kind][0].locks(member.decoded)
    match _name_key(member):
        case PlacementKey(name):
            return (exclusive(placement_key(name)),)
        case TablespaceKey(catalog, name):
            return (shared(catalog_key(catalog)), exclusive(tablespace_key(catalog, name)))
        case TableNameKey(catalog, schema, table):
            return in_schema(catalog, schema, exclusive(name_key(catalog, schema, table)))
        case SchemaNameKey(catalog, schema):
            return (shared(catalog_key(catalog)), exclusive(schema_key(catalog, schema)))
        case CatalogNameKey(catalog):
            return (exclusive(catalog_key(catalog)),)


def _name_key(miss: Miss) -> NamedKey:
    if miss.kind in PLACING_KINDS:
        return placing_key(miss.name)
    match miss.name.split("."):
        case [catalog, schema, table]:
            return TableNameKey(catalog, schema, table)
        case [catalog, schema]:
            return SchemaNameKey(catalog, schema)
        case _:
            return CatalogNameKey(miss.name)
