"""drop_catalog: an empty one at once; with `cascade`, its schemas first, behind one mark.

As of a schema: the first transaction hides it with all that it holds, children drop the schemas
with their tables, the last transaction deletes the name.
"""

from base.errors import Conflict, NotFound
from keys.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.log import CatalogDropped, CatalogDropping
from keys.records import Lock, Resource
from keys.txn import Txn
from keys.value import decode
from procedures.cascade import BATCH, Cascade, first_inside, gathered, submit_each, with_children
from procedures.context import Context
from procedures.kinds.drop_schema import DROP_SCHEMA, DropSchema
from procedures.locks import catalog_key, exclusive
from procedures.machine import Done, Goto, Kind, Outcome, Step


class DropCatalog(Cascade):
    name: str
    catalog_id: int


async def drop(state: DropCatalog, at: Context) -> Outcome[DropCatalog]:
    """Deletes an empty catalog. One with schemas is refused, or (`cascade`) hidden with them."""
    key = CatalogNameKey(state.name)
    seen = await at.snapshot(key)
    info = _same(state, seen.get(key))
    if await first_inside(at, SchemaNameKey.under(state.name), 1):
        if not state.cascade:
            raise Conflict("not-empty", name=state.name)
        hidden = info.model_copy(update={"dropping": at.procedure})
        txn = Txn.on(seen).put(key, hidden).log(CatalogDropping(info=hidden))
        return Goto("look", state, txn)
    return _gone(state, Txn.on(seen))


async def look(state: DropCatalog, at: Context) -> Outcome[DropCatalog]:
    """The next schemas; when none is left, the catalog itself goes."""
    found = await first_inside(at, SchemaNameKey.under(state.name), BATCH)
    if found:
        keys = [SchemaNameKey.parse(item.key) for item in found]
        return Goto("submit", with_children(state, keys, at))
    return _gone(state, Txn.on(await at.snapshot(CatalogNameKey(state.name))))


async def submit(state: DropCatalog, at: Context) -> Outcome[DropCatalog]:
    """One drop_schema, with cascade, for each of the next schemas."""
    states = {}
    for item in await first_inside(at, SchemaNameKey.under(state.name), BATCH):
        key = SchemaNameKey.parse(item.key)
        if str(key) in state.children:
            states[str(key)] = DropSchema(
                catalog=key.catalog,
                name=key.schema,
                schema_id=decode(SchemaInfo, item.value, key=str(key)).schema_id,
                cascade=True,
                covered=True,
            )
    await submit_each(state, DROP_SCHEMA.name, states, at)
    return Goto("gather", state)


async def gather(state: DropCatalog, at: Context) -> Outcome[DropCatalog]:
    """Until they are over; a schema whose drop failed is found again."""
    return Goto("look", await gathered(state, at))


def _same(state: DropCatalog, info: CatalogInfo | None) -> CatalogInfo:
    if info is None:
        raise NotFound(what="catalog", name=state.name)
    if info.catalog_id != state.catalog_id:
        raise Conflict("schema-conflict", name=state.name)
    return info


def _gone(state: DropCatalog, read: Txn) -> Done[DropCatalog]:
    txn = read.delete(CatalogNameKey(state.name)).while_empty(SchemaNameKey.under(state.name))
    txn = txn.log(CatalogDropped(name=state.name))
    return Done(state, {"catalog_id": state.catalog_id, "name": state.name}, txn)


def locks(state: DropCatalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(state.name)),)


def resource(state: DropCatalog) -> Resource:
    return Resource(type="catalog", id=str(state.catalog_id), name=state.name)


DROP_CATALOG = Kind(
    name="drop_catalog",
    state=DropCatalog,
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
