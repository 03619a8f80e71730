"""drop_schema: drops an empty schema at once; with `cascade`, its tables first.

The transaction that drops an empty schema compares the range of its tables. A schema with tables is
marked `dropping` by the first transaction, which hides it and them from every reader; then each
table is dropped by a child, and the last transaction deletes the name.
"""

from dataclasses import replace

from keys.commit.txn import Txn
from keys.model.records import Lock, Resource
from keys.model.tables import TableNameKey, TableNameRecord
from keys.store.kv import KeyValue
from keys.value import decode
from metasrv_base.errors import Conflict
from procedures.commands.command import change_of
from procedures.commands.namespace_commands import DropSchemaCommand
from procedures.context import Context
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.locking.locks import catalog_key, exclusive, schema_key, shared
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

WIDTH = 32  # children under way at once: each keeps a record until it is over


class DropSchema(Paged):
    """A drop of a schema with its tables. Its children take no lock of the schema side: they
    would queue behind procedures that wait for their parent, which holds the schema's lock."""

    catalog: str
    name: str
    schema_id: int
    cascade: bool = False
    """Whether its tables are dropped too; else it is refused while it has tables."""
    covered: bool = False
    """A parent holds its catalog exclusively."""


async def drop(state: DropSchema, context: Context) -> Outcome[DropSchema]:
    """Deletes an empty schema. One with tables is refused, or (`cascade`) hidden with them."""
    command = _command(state)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    if not await first_inside(context, TableNameKey.under(state.catalog, state.name), 1):
        return _gone(state, txn)
    if not state.cascade:
        raise Conflict("not-empty", name=_full(state))
    command = replace(command, hidden_by=context.procedure)
    return Goto("look", state, change_of(command, snapshot))


async def look(state: DropSchema, context: Context) -> Outcome[DropSchema]:
    """Begins another round over the remaining tables; if there are none, removes the schema."""
    if await first_inside(context, TableNameKey.under(state.catalog, state.name), 1):
        return await next_round(state, context)
    command = _command(state)
    return _gone(state, change_of(command, await context.snapshot(*command.keys())))


async def submit(state: DropSchema, context: Context) -> Outcome[DropSchema]:
    """Submits one drop_table for each table of a page."""

    async def begin(item: KeyValue) -> None:
        key = TableNameKey.parse(item.key)
        table_id = decode(TableNameRecord, item.value, key=str(key)).table_id
        child = DropTable(
            catalog=key.catalog,
            schema_name=key.schema,
            name=key.table,
            table_id=table_id,
            covered=True,
        )
        number = child_id(context.procedure, state.rounds, table_id)
        await context.children.submit(number, DROP_TABLE.name, child.model_dump(mode="json"))

    tables = TableNameKey.under(state.catalog, state.name)
    return await submit_page(state, context, ChildPlan(tables, begin, nothing_spared, WIDTH))


async def gather(state: DropSchema, context: Context) -> Outcome[DropSchema]:
    """Waits for the children; a table whose drop failed is found by the next round."""
    await at_most(context, 0)
    return Goto("look", state)


def _command(state: DropSchema) -> DropSchemaCommand:
    return DropSchemaCommand(state.catalog, state.name, state.schema_id)


def _gone(state: DropSchema, txn: Txn) -> Done[DropSchema]:
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
