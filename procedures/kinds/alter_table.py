"""alter_table: options, column names and new nullable columns, all in one transaction.

A column is added in one step: the transaction publishes it, one schema version higher, and then
every open region is told, before the change is answered. The floor stays, so statements of the
version before still end: what they write, and what was written before, reads as null in the new
column. A region that has not been told yet does not take what names the new version (`not-ready`).
"""

from typing import Annotated, Literal

from pydantic import Field

from base.errors import Conflict, Refused, Unavailable
from base.wire.tables import COLUMNS_MAX
from keys.log import TableAltered
from keys.records import Lock, Resource
from keys.tables import (
    Column,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRouteKey,
)
from keys.txn import Txn
from keys.value import StoredPart
from procedures.context import Context
from procedures.locks import exclusive, in_schema, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.opening import open_order, order_all
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


class AddColumn(StoredPart):
    """As stored. Nullable, and null in every row there is."""

    op: Literal["add_column"] = "add_column"
    name: str
    type: str
    after: str | None = None
    """Null: behind the last one."""


Operation = Annotated[SetOptions | RenameColumn | AddColumn, Field(discriminator="op")]


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
            case AddColumn():
                info = _add_column(info, operation, f"/operations/{number}")
    schema_version = info.schema_version + adds_column(operations)
    return info.model_copy(update={"version": info.version + 1, "schema_version": schema_version})


def adds_column(operations: tuple[Operation, ...]) -> bool:
    """Whether it makes a schema version: regions know columns by id and type, never by name."""
    return any(isinstance(operation, AddColumn) for operation in operations)


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


def _add_column(info: TableInfo, operation: AddColumn, pointer: str) -> TableInfo:
    names = [column.name for column in info.columns]
    holder = next((name for name in names if name.lower() == operation.name.lower()), None)
    if holder is not None:
        here = f"{pointer}/column/name"
        raise Conflict("already-exists", what="column", name=holder, pointer=here)
    if len(names) == COLUMNS_MAX:
        reason = f"a table has at most {COLUMNS_MAX} columns"
        raise Refused("invalid-schema-change", pointer=pointer, reason=reason)
    if operation.after is not None and operation.after not in names:
        reason = f"column {operation.after} does not exist"
        raise Refused("invalid-schema-change", pointer=f"{pointer}/after", reason=reason)
    place = len(names) if operation.after is None else names.index(operation.after) + 1
    new = Column(id=info.next_column_id, name=operation.name, type=operation.type, nullable=True)
    columns = (*info.columns[:place], new, *info.columns[place:])
    update = {"columns": columns, "next_column_id": info.next_column_id + 1}
    return info.model_copy(update=update)


async def alter(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Publishes the table as it is after all operations."""
    key = TableInfoKey(state.table_id)
    name = TableNameKey(state.catalog, state.schema_name, state.name)
    seen = await at.snapshot(key, name)
    require_same_table(at.client, name, seen.get(name))
    info = seen.must(key)
    require_version(at.client, info)
    new = altered(info, state.operations)
    txn = Txn.on(seen).put(key, new).log(TableAltered(info=new))
    if adds_column(state.operations):
        return Goto("tell", state, txn)
    return Done(state, {"table_id": state.table_id, "name": new.full_name}, txn)


async def tell(state: AlterTable, at: Context) -> Outcome[AlterTable]:
    """Orders every open region to serve with the new columns.

    One that is being opened is waited for: it may have been ordered with the old ones. One whose
    node is gone, or whose storage is lost, hears of them when it is opened.
    """
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    seen = await at.snapshot(info_key, key)
    info, route = seen.must(info_key), seen.must(key)
    opening = [r.region_id for r in route.region_routes if r.state is RegionState.OPENING]
    if opening:
        raise Unavailable("not-ready", what=f"regions {', '.join(opening)}", reason="being opened")
    alive = at.alive_nodes()
    here = [r for r in route.region_routes if r.leader in alive and r.state is RegionState.OPEN]
    answers = await order_all(at, info, here, open_order)
    answers.must_all_succeed()
    return Done(state, {"table_id": state.table_id, "name": info.full_name})


def locks(state: AlterTable) -> tuple[Lock, ...]:
    return in_schema(state.catalog, state.schema_name, exclusive(table_key(state.table_id)))


def resource(state: AlterTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


ALTER_TABLE = Kind(
    name="alter_table",
    state=AlterTable,
    steps={"alter": Step(alter, to=frozenset({"tell"}), ends=True), "tell": Step(tell)},
    no_return="alter",
    locks=locks,
    resource=resource,
    success=200,
)
