"""rename_table: another name, in the same schema or another one; nodes never hear of it.

Or two tables exchange their names: in one moment, so that neither name is ever without a table.
It is over once every frontend knows: under a name, who is answered finds one table everywhere.
"""

from keys.commit.change import change
from keys.commit.txn import Snapshot
from keys.model.catalogs import SchemaNameKey
from keys.model.log import TableRenamed, TablesExchanged
from keys.model.records import Lock, Resource
from keys.model.tables import TableInfo, TableInfoKey, TableNameKey
from metasrv_base.errors import Conflict, NotFound
from procedures.context import Context
from procedures.locking.locks import distinct, exclusive, in_schema, name_key, table_key
from procedures.machine import Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.existing import must_be_free
from procedures.steps.requirements import (
    ends_if_missing,
    require_same_table,
    require_version,
)


class RenameTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    new_schema: str
    new_name: str
    other_id: int | None = None
    """The table that bears the new name, and takes the old one; None: nobody may bear it."""


async def rename(state: RenameTable, context: Context) -> Outcome[RenameTable]:
    old = TableNameKey(state.catalog, state.schema_name, state.name)
    new = TableNameKey(state.catalog, state.new_schema, state.new_name)
    info_key = TableInfoKey(state.table_id)
    other_key = TableInfoKey(state.other_id or state.table_id)
    schema = SchemaNameKey(state.catalog, state.new_schema)
    snapshot = await context.snapshot(info_key, old, new, schema, other_key)
    require_same_table(context.client, old, snapshot.get(old))
    info = snapshot.must(info_key)
    require_version(context.client, info)
    if snapshot.get(schema) is None:
        raise NotFound(what="schema", name=f"{state.catalog}.{state.new_schema}")
    if state.other_id is None:
        must_be_free("table", _full(new), snapshot.get(new))
        return Goto("finish", state, change(snapshot, TableRenamed(info=_named(info, new))))
    other = _named(_bearer(state.other_id, new, snapshot), old)
    entry = TablesExchanged(first=_named(info, new), second=other)
    return Goto("finish", state, change(snapshot, entry))


def _bearer(table_id: int, name: TableNameKey, snapshot: Snapshot) -> TableInfo:
    """The table that still bears that name."""
    record = snapshot.get(name)
    if record is None:
        raise NotFound("table-not-found", table=_full(name))
    if record.table_id != table_id:
        raise Conflict("schema-conflict", name=_full(name), table_id=table_id, now=record.table_id)
    return snapshot.must(TableInfoKey(table_id))


def _named(info: TableInfo, name: TableNameKey) -> TableInfo:
    update = {"schema_name": name.schema, "name": name.table, "version": info.version + 1}
    return info.model_copy(update=update)


def _full(name: TableNameKey) -> str:
    return f"{name.catalog}.{name.schema}.{name.table}"


async def finish(state: RenameTable, context: Context) -> Outcome[RenameTable]:
    await context.drained(state.table_id, None)
    full = f"{state.catalog}.{state.new_schema}.{state.new_name}"
    return Done(state, {"table_id": state.table_id, "name": full})


def locks(state: RenameTable) -> tuple[Lock, ...]:
    others = () if state.other_id is None else (exclusive(table_key(state.other_id)),)
    return distinct(
        *in_schema(state.catalog, state.schema_name),
        *in_schema(state.catalog, state.new_schema),
        exclusive(name_key(state.catalog, state.schema_name, state.name)),
        exclusive(name_key(state.catalog, state.new_schema, state.new_name)),
        exclusive(table_key(state.table_id)),
        *others,
    )


def resource(state: RenameTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


RENAME_TABLE = Kind(
    name="rename_table",
    state=RenameTable,
    steps={
        "rename": Step(ends_if_missing(rename, resource), to=frozenset({"finish"}), ends=True),
        "finish": Step(finish, waits=True),
    },
    no_return="rename",
    locks=locks,
    resource=resource,
    success=200,
)
