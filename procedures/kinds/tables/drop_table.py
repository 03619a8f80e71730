"""drop_table: hidden first; its keys move under `__removed-` once no statement uses it any more.

Statements that began before can still use the table, new ones do not find it, and a cancel restores
it as it was. Then its regions close; its files stay. No node is asked before that, so a lost region
or a dead node does not delay a drop (docs/decisions/0099). A concurrent change never makes it fail:
after a failed compare it reads again and continues (docs/protocols.md P1.8).
"""

from dataclasses import replace
from operator import not_

from pydantic import Field

from keys.model.records import Lock, Resource
from keys.model.removed import RemovedTableInfoKey, RemovedTableRouteKey
from keys.model.tables import TableInfo, TableInfoKey, TableNameKey, TableRoute
from metasrv_base.elements.graphs import TABLE
from procedures.commands.command import change_of
from procedures.commands.drop_commands import DropTableCommand, HideTableCommand, ShowTableCommand
from procedures.context import Context
from procedures.elements.transition_notes import hidden
from procedures.locking.locks import exclusive, route_key, table_key, whole_table
from procedures.machine import Back, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_orders import (
    answered_by_all_that_do,
    close_copy,
    living,
    order_copies,
    targets_of,
)
from procedures.steps.region_cleanup import outwait_leases
from procedures.steps.requirements import ends_if_missing

WAIT_MS = 600_000
"""Limit of the wait for holders of schema leases, which expire long before; then it is undone."""


class DropTable(ProcedureState):
    catalog: str
    schema_name: str
    name: str
    table_id: int
    covered: bool = False
    """A parent holds its schema, or its catalog, exclusively."""
    freed: bool = Field(default=False, exclude_if=not_)
    """A batch has dropped it: it is hidden, nothing shows it again, and its name may be another
    table's."""
    info: TableInfo | None = None
    """Definition of the table, in records of an earlier server; otherwise it is read from its
    removed key."""
    route: TableRoute | None = None


async def hide(state: DropTable, context: Context) -> Outcome[DropTable]:
    """Hides the table from new statements, and keeps its name from other tables."""
    if state.freed:
        return Goto("remove", state)
    command = HideTableCommand(_name(state), state.table_id, context.client)
    snapshot = await context.snapshot(*command.keys())
    txn = change_of(command, snapshot)
    context.note(hidden(snapshot.must(TableInfoKey(state.table_id))))
    return Goto("remove", state, txn)


async def show(state: DropTable, context: Context) -> Back | None:
    if state.freed:
        return None
    command = ShowTableCommand(state.table_id)
    txn = change_of(command, await context.snapshot(*command.keys()))
    return Back(txn) if txn.entries else None


def _name(state: DropTable) -> TableNameKey:
    return TableNameKey(state.catalog, state.schema_name, state.name)


async def remove(state: DropTable, context: Context) -> Outcome[DropTable]:
    """Removes the table once no holder uses it."""
    at_ms, table_id = context.ports.clock.wall_ms(), state.table_id
    command = DropTableCommand(_name(state), table_id, at_ms, context.procedure, state.freed)
    snapshot = await context.snapshot(*command.keys())
    info = snapshot.must(TableInfoKey(table_id))
    if info.is_hidden:  # not in a drop that a server of before began
        await context.drained(table_id, info.schema_version + 1)
    command = replace(command, at_ms=context.ports.clock.wall_ms())
    return Goto("close", state, change_of(command, snapshot))


async def close(state: DropTable, context: Context) -> Outcome[DropTable]:
    """Orders the nodes to close the regions. A node that is dead loses its leases soon, those of
    one that answers no orders are waited out, and the answer to its next heartbeat tells it to
    close them. In a restored cluster the table is purged; its nodes had closed their regions."""
    info, route = state.info, state.route
    if info is None or route is None:
        info_key, key = RemovedTableInfoKey(state.table_id), RemovedTableRouteKey(state.table_id)
        snapshot = await context.snapshot(info_key, key)
        removed = snapshot.get(info_key)
        if removed is None:
            return Done(state, {"table_id": state.table_id, "name": resource(state).name})
        info, route = removed.info, snapshot.must(key).route
    able = context.answering_nodes()
    targets = living(targets_of(info, route.region_routes), able)
    decided = answered_by_all_that_do(context, targets)
    answers = await order_copies(context, targets, close_copy, decided)
    answers.must_all_succeed()
    led = [region for region in route.region_routes if region.leader not in able]
    silent = {region.leader for region in led} & context.alive_nodes()
    await outwait_leases(context, sorted(silent), [region.region_id for region in led])
    return Done(state, {"table_id": state.table_id, "name": info.full_name})


def locks(state: DropTable) -> tuple[Lock, ...]:
    if state.covered:
        return (exclusive(route_key(state.table_id)),)
    if state.freed:
        return (exclusive(table_key(state.table_id)), exclusive(route_key(state.table_id)))
    return whole_table(state.catalog, state.schema_name, state.name, state.table_id)


def resource(state: DropTable) -> Resource:
    return Resource.table(state.table_id, state.catalog, state.schema_name, state.name)


DROP_TABLE = Kind(
    name="drop_table",
    state=DropTable,
    steps={
        "hide": Step(
            ends_if_missing(hide, resource), to=frozenset({"remove"}), undo=show, ends=True
        ),
        "remove": Step(remove, to=frozenset({"close"}), waits=True),
        "close": Step(close, waits=True),
    },
    no_return="remove",
    locks=locks,
    resource=resource,
    success=204,
    deadline_ms=WAIT_MS,
    graphs=(TABLE,),
)
