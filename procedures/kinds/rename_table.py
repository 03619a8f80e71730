"""rename_table: another name, in the same schema or another one; nodes never hear of it."""

from base.errors import Conflict, NotFound
from keys.catalogs import SchemaNameKey
from keys.log import TableRenamed
from keys.records import Lock, Resource
from keys.tables import TableInfoKey, TableName, TableNameKey
from keys.txn import Txn
from procedures.context import Context
from procedures.locks import distinct, exclusive, in_schema, name_key, table_key
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step
from procedures.requirements import require_same_table, require_version


class RenameTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    new_schema: str
    new_name: str


async def rename(state: RenameTable, at: Context) -> Outcome[RenameTable]:
    old = TableNameKey(state.catalog, state.schema_name, state.name)
    new = TableNameKey(state.catalog, state.new_schema, state.new_name)
    info_key = TableInfoKey(state.table_id)
    schema = SchemaNameKey(state.catalog, state.new_schema)
    seen = await at.snapshot(info_key, old, new, schema)
    require_same_table(at.client, old, seen.get(old))
    info = seen.must(info_key)
    require_version(at.client, info)
    if seen.get(schema) is None:
        raise NotFound(what="schema", name=f"{state.catalog}.{state.new_schema}")
    if seen.get(new) is not None:
        full = f"{state.catalog}.{state.new_schema}.{state.new_name}"
        raise Conflict("already-exists", what="table", name=full)
    renamed = info.model_copy(
        update={
            "schema_name": state.new_schema,
            "name": state.new_name,
            "version": info.version + 1,
        }
    )
    txn = Txn.on(seen).put(info_key, renamed).delete(old)
    txn = txn.put(new, TableName(table_id=state.table_id)).log(TableRenamed(info=renamed))
    return Done(state, {"table_id": state.table_id, "name": renamed.full_name}, txn)


def locks(state: RenameTable) -> tuple[Lock, ...]:
    return distinct(
        *in_schema(state.catalog, state.schema_name),
        *in_schema(state.catalog, state.new_schema),
        exclusive(name_key(state.catalog, state.schema_name, state.name)),
        exclusive(name_key(state.catalog, state.new_schema, state.new_name)),
        exclusive(table_key(state.table_id)),
    )


def resource(state: RenameTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


RENAME_TABLE = Kind(
    name="rename_table",
    state=RenameTable,
    steps={"rename": Step(rename)},
    no_return="rename",
    locks=locks,
    resource=resource,
    success=200,
)
