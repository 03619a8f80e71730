"""drop_schema: an empty one at once; with `cascade`, its tables first, behind one mark.

That it is empty is a compare over the range of its tables. With tables, the first transaction marks
it `dropping`, which hides it and them from every reader; then each table is dropped by a child, and
the last transaction deletes the name.
"""

from base.errors import Conflict, NotFound
from keys.catalogs import SchemaInfo, SchemaNameKey
from keys.log import SchemaDropped, SchemaDropping
from keys.records import Lock, Resource
from keys.tables import TableName, TableNameKey
from keys.txn import Txn
from keys.value import decode
from procedures.cascade import BATCH, Cascade, first_inside, gathered, submit_each, with_children
from procedures.context import Context
from procedures.kinds.drop_table import DROP_TABLE, DropTable
from procedures.locks import catalog_key, exclusive, schema_key, shared
from procedures.machine import Done, Goto, Kind, Outcome, Step


class DropSchema(Cascade):
    catalog: str
    name: str
    schema_id: int
    covered: bool = False
    """A parent holds its catalog exclusively."""


async def drop(state: DropSchema, at: Context) -> Outcome[DropSchema]:
    """Deletes an empty schema. One with tables is refused, or (`cascade`) hidden with them."""
    key = SchemaNameKey(state.catalog, state.name)
    seen = await at.snapshot(key)
    info = _same(state, seen.get(key))
    tables = TableNameKey.under(state.catalog, state.name)
    if await first_inside(at, tables, 1):
        if not state.cascade:
            raise Conflict("not-empty", name=_full(state))
        hidden = info.model_copy(update={"dropping": at.procedure})
        txn = Txn.on(seen).put(key, hidden).log(SchemaDropping(info=hidden))
        return Goto("look", state, txn)
    return _gone(state, Txn.on(seen))


async def look(state: DropSchema, at: Context) -> Outcome[DropSchema]:
    """The next tables; when none is left, the schema itself goes."""
    found = await first_inside(at, TableNameKey.under(state.catalog, state.name), BATCH)
    if found:
        keys = [TableNameKey.parse(item.key) for item in found]
        return Goto("submit", with_children(state, keys, at))
    return _gone(state, Txn.on(await at.snapshot(SchemaNameKey(state.catalog, state.name))))


async def submit(state: DropSchema, at: Context) -> Outcome[DropSchema]:
    """One drop_table for each of the next tables."""
    found = await first_inside(at, TableNameKey.under(state.catalog, state.name), BATCH)
    states = {}
    for item in found:
        key = TableNameKey.parse(item.key)
        if str(key) in state.children:
            states[str(key)] = DropTable(
                catalog=key.catalog,
                schema_name=key.schema,
                name=key.table,
                table_id=decode(TableName, item.value, key=str(key)).table_id,
                covered=True,
            )
    await submit_each(state, DROP_TABLE.name, states, at)
    return Goto("gather", state)


async def gather(state: DropSchema, at: Context) -> Outcome[DropSchema]:
    """Until they are over; a table whose drop failed is found again."""
    return Goto("look", await gathered(state, at))


def _same(state: DropSchema, info: SchemaInfo | None) -> SchemaInfo:
    if info is None:
        raise NotFound(what="schema", name=_full(state))
    if info.schema_id != state.schema_id:
        raise Conflict("schema-conflict", name=_full(state))
    return info


def _gone(state: DropSchema, read: Txn) -> Done[DropSchema]:
    txn = read.delete(SchemaNameKey(state.catalog, state.name))
    txn = txn.while_empty(TableNameKey.under(state.catalog, state.name))
    txn = txn.log(SchemaDropped(catalog=state.catalog, name=state.name))
    return Done(state, {"schema_id": state.schema_id, "name": _full(state)}, txn)


def _full(state: DropSchema) -> str:
    return f"{state.catalog}.{state.name}"


def locks(state: DropSchema) -> tuple[Lock, ...]:
    if state.covered:
        return ()
    return (shared(catalog_key(state.catalog)), exclusive(schema_key(state.catalog, state.name)))


def resource(state: DropSchema) -> Resource:
    return Resource(type="schema", id=str(state.schema_id), name=_full(state))


DROP_SCHEMA = Kind(
    name="drop_schema",
    state=DropSchema,
    steps={
        "drop": Step(drop, to=frozenset({"look"}), ends=True),
        "look": Step(look, to=frozenset({"submit"}), ends=True),
        "submit": Step(submit, to=frozenset({"gather"})),
        "gather": Step(gather, to=frozenset({"look"}), waits=True),
    },
    no_return="drop",
    locks=locks,
    resource=resource,
    success=204,
)
