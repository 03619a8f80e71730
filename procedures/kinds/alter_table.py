"""alter_table: options and column names, all operations of one request in one transaction."""

from typing import Annotated, Literal

from pydantic import Field

from base.errors import Conflict, Refused
from keys.log import TableAltered
from keys.records import Lock, Resource
from keys.tables import TableInfo, TableInfoKey, TableNameKey
from keys.txn import Txn
from keys.value import StoredPart
from procedures.context import Context
from procedures.locks import exclusive, in_schema, table_key
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.requirements import require_same_table, require_version


class SetOptions(StoredPart):
    """As stored; None removes."""

    op: Literal["set_options"] = "set_options"
    options: dict[str, str | None]


class RenameColumn(StoredPart):
    """As stored. Its id and its rows stay."""

    op: Literal["rename_column"] = "rename_column"
    name: str
    new_name: str


Operation = Annotated[SetOptions | RenameColumn, Field(discriminator="op")]


class AlterTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    operations: tuple[Operation, ...]


def altered(info: TableInfo, operations: tuple[Operation, ...]) -> TableInfo:
    """The table after all of *operations*, in order: one version later.

    Raises Refused or Conflict, with a pointer to the operation that cannot be.
    """
    for number, operation in enumerate(operations):
        match operation:
            case SetOptions():
                info = _set_options(info, operation)
            case RenameColumn():
                info = _rename_column(info, operation, f"/operations/{number}")
    return info.model_copy(update={"version": info.version + 1})


def _set_options(info: TableInfo, operation: SetOptions) -> TableInfo:
    merged = {**info.options, **operation.options}
    kept = {name: value for name, value in merged.items() if value is not None}
    return info.model_copy(update={"options": kept})


def _rename_column(info: TableInfo, operation: RenameColumn, pointer: str) -> TableInfo:
    names = {column.name.lower(): column.name for column in info.columns}
    if operation.name not in names.values():
        raise Refused(
            "invalid-schema-change",
            pointer=f"{pointer}/name",
            reason=f"column {operation.name} does not exist",
        )
    holder = names.get(operation.new_name.lower())
    if holder not in (None, operation.name):
        raise Conflict("already-exists", what="column", name=holder, pointer=f"{pointer}/new_name")
    columns = tuple(
        column.model_copy(update={"name": operation.new_name})
        if column.name == operation.name
        else column
        for column in info.columns
    )
    return info.model_copy(update={"columns": columns})


async def alter(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    key = TableInfoKey(state.table_id)
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    seen = await at.snapshot(key, name)
    require_same_table(at.client, name, seen.get(name))
    info = seen.must(key)
    require_version(at.client, info)
    new = altered(info, state.operations)
    txn = Txn.on(seen).put(key, new).log(TableAltered(info=new))
    return Done(state, {"table_id": state.table_id, "name": new.full_name}, txn)


def locks(state: AlterTable) -> tuple[Lock, ...]:
    return in_schema(state.catalog, state.schema_name, exclusive(table_key(state.table_id)))


def resource(state: AlterTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


ALTER_TABLE = Kind(
    name="alter_table",
    state=AlterTable,
    steps={"alter": Step(alter)},
    no_return="alter",
    locks=locks,
    resource=resource,
    success=200,
)
