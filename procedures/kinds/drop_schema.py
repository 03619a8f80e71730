"""drop_schema: only an empty one; that it is empty is a compare over the range of its tables."""

from base.errors import Conflict, NotFound
from keys.catalogs import SchemaNameKey
from keys.kv import Get
from keys.log import SchemaDropped
from keys.records import Lock, Resource
from keys.tables import TableNameKey
from keys.txn import Txn
from procedures.context import Context
from procedures.locks import catalog_key, exclusive, schema_key, shared
from procedures.machine import Done, Kind, Outcome, ProcedureState, Step


class DropSchema(ProcedureState):
    catalog: str
    name: str
    schema_id: int


async def drop(state: DropSchema, at: Context) -> Outcome[DropSchema]:
    key = SchemaNameKey(state.catalog, state.name)
    full = f"{state.catalog}.{state.name}"
    seen = await at.snapshot(key)
    info = seen.get(key)
    if info is None:
        raise NotFound(what="schema", name=full)
    if info.schema_id != state.schema_id:
        raise Conflict("schema-conflict", name=full)
    tables = TableNameKey.under(state.catalog, state.name)
    page = await at.ports.kv.range(
        Get(tables.start, tables.end, limit=1, keys_only=True), deadline_ms=at.ports.deadline_ms
    )
    if page.items:
        raise Conflict("not-empty", name=full)
    txn = Txn.on(seen).delete(key).while_empty(tables)
    txn = txn.log(SchemaDropped(catalog=state.catalog, name=state.name))
    return Done(state, {"schema_id": state.schema_id, "name": full}, txn)


def locks(state: DropSchema) -> tuple[Lock, ...]:
    return (shared(catalog_key(state.catalog)), exclusive(schema_key(state.catalog, state.name)))


def resource(state: DropSchema) -> Resource:
    full = f"{state.catalog}.{state.name}"
    return Resource(type="schema", id=str(state.schema_id), name=full)


DROP_SCHEMA = Kind(
    name="drop_schema",
    state=DropSchema,
    steps={"drop": Step(drop)},
    no_return="drop",
    locks=locks,
    resource=resource,
    success=204,
)
