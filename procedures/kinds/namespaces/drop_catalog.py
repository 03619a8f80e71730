"""drop_catalog: drops an empty catalog at once; with `cascade`, its schemas first.

With `cascade`, the first transaction hides the catalog with all its objects, children drop the
schemas with their tables, and the last transaction deletes the name.
"""

from dataclasses import replace

from keys.commit.txn import Txn
from keys.model.catalogs import DEFAULT_SCHEMA, SchemaInfo, SchemaNameKey
from keys.model.placing.tablespaces import TablespaceKey
from keys.model.records import Lock, Resource
from keys.model.tables import TableNameKey
from keys.store.kv import TXN_OPS_MAX, Get, KeyValue
from keys.value import decode
from metasrv_base.errors import Conflict
from procedures.commands.command import change_of
from procedures.commands.namespace_commands import DropCatalogCommand
from procedures.context import Context
from procedures.kinds.namespaces.drop_schema import DROP_SCHEMA, WIDTH, DropSchema
from procedures.locking.locks import catalog_key, exclusive
from procedures.machine import Done, Goto, Kind, Outcome, Step
from procedures.steps.paged_children import (
    ChildPlan,
    Paged,
    at_most,
    child_id,
    first_inside,
    next_round,
    nothing_spared,
    submit_page,
)
from procedures.steps.requirements import ends_if_missing


class DropCatalog(Paged):
    name: str
    catalog_id: int
    cascade: bool = False
    """Whether its tables and schemas are dropped too; else it is refused while it has tables, or
    other schemas than its default one."""


async def drop(state: DropCatalog, context: Context) -> Outcome[DropCatalog]:
    """Deletes an empty catalog. One with schemas is refused, or (`cascade`) hidden with them."""
    command = await _command(state, context)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    inside = await first_inside(context, SchemaNameKey.under(state.name), 2)
    if not inside:
        return _gone(state, txn)
    if not state.cascade:
        return await _with_default_schema(state, context, inside)
    command = replace(command, hidden_by=context.procedure, tablespaces=())
    return Goto("look", state, change_of(command, snapshot))


async def _with_default_schema(
    state: DropCatalog, context: Context, inside: tuple[KeyValue, ...]
) -> Done[DropCatalog]:
    """A catalog that holds its default schema alone, and no table, goes with it: the catalog's
    lock keeps other schemas away. Raises Conflict("not-empty")."""
    names = [SchemaNameKey.parse(item.key).schema for item in inside]
    tables = TableNameKey.under(state.name, DEFAULT_SCHEMA)
    if names != [DEFAULT_SCHEMA] or await first_inside(context, tables, 1):
        raise Conflict("not-empty", name=state.name)
    command = replace(await _command(state, context), schema=DEFAULT_SCHEMA)
    return _gone(state, change_of(command, await context.snapshot(*command.keys())))


async def look(state: DropCatalog, context: Context) -> Outcome[DropCatalog]:
    """Begins another round over the remaining schemas; if there are none, removes the catalog."""
    if await first_inside(context, SchemaNameKey.under(state.name), 1):
        return await next_round(state, context)
    command = await _command(state, context)
    return _gone(state, change_of(command, await context.snapshot(*command.keys())))


async def submit(state: DropCatalog, context: Context) -> Outcome[DropCatalog]:
    """Submits one drop_schema, with cascade, for each schema of a page."""

    async def begin(item: KeyValue) -> None:
        key = SchemaNameKey.parse(item.key)
        schema_id = decode(SchemaInfo, item.value, key=str(key)).schema_id
        child = DropSchema(
            catalog=key.catalog, name=key.schema, schema_id=schema_id, cascade=True, covered=True
        )
        number = child_id(context.procedure, state.rounds, schema_id)
        await context.children.submit(number, DROP_SCHEMA.name, child.model_dump(mode="json"))

    schemas = SchemaNameKey.under(state.name)
    return await submit_page(state, context, ChildPlan(schemas, begin, nothing_spared, WIDTH))


async def gather(state: DropCatalog, context: Context) -> Outcome[DropCatalog]:
    """Waits for the children; a schema whose drop failed is found by the next round."""
    await at_most(context, 0)
    return Goto("look", state)


async def _command(state: DropCatalog, context: Context) -> DropCatalogCommand:
    """Returns the drop of an empty catalog, with the tablespaces that it has now."""
    spaces = TablespaceKey.under(state.name)
    get = Get(spaces.start, spaces.end, limit=TXN_OPS_MAX)
    page = await context.ports.kv.range(get, deadline_ms=context.ports.deadline_ms)
    names = tuple(TablespaceKey.parse(item.key).name for item in page.items)
    return DropCatalogCommand(
        state.name, state.catalog_id, tablespaces=names, known_at=page.revision
    )


def _gone(state: DropCatalog, txn: Txn) -> Done[DropCatalog]:
    return Done(state, {"catalog_id": state.catalog_id, "name": state.name}, txn)


def locks(state: DropCatalog) -> tuple[Lock, ...]:
    return (exclusive(catalog_key(state.name)),)


def resource(state: DropCatalog) -> Resource:
    return Resource(type="catalog", id=str(state.catalog_id), name=state.name)


DROP_CATALOG = Kind(
    name="drop_catalog",
    state=DropCatalog,
    steps={
        "drop": Step(ends_if_missing(drop, resource), to=frozenset({"look"}), ends=True),
        "look": Step(look, to=frozenset({"submit"}), ends=True, waits=True),
        "submit": Step(submit, to=frozenset({"submit", "gather"}), waits=True),
        "gather": Step(gather, to=frozenset({"look"}), waits=True),
    },
    no_return="drop",
    locks=locks,
    resource=resource,
    success=204,
    removes_contents=True,
)
