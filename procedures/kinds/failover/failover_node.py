"""failover_node: moves every region from a node, by one child for each table with regions there.

The parent holds no lock that a child of another parent could need, and does not count for the
admission limit while it waits. Before its end it looks again, for tables that came meanwhile. The
size of its record and of its history does not depend on the number of tables.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from immutables import Map
from pydantic import model_validator

from keys.catalog.tables.heads import leaders_in
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.records import Lock, Resource
from keys.model.records import ProcedureOutcome as Ended
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableRouteKey
from keys.store.kv import KeyValue
from keys.store.scan import pages
from metasrv_base.wire.api.procedures import PARALLEL_MAX
from procedures.context import Context
from procedures.kinds.failover.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.locking.locks import exclusive, node_key
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, Step
from procedures.steps.paged_children import (
    ChildPlan,
    Paged,
    at_most,
    child_id,
    first_inside,
    next_round,
    submit_page,
)

ROUNDS_MAX = 8  # over the tables of the node; one that fails that often is reported
LOOK_MS = 10_000  # between two looks at the node, while children are under way
LEFT_TOLD_MAX = 64  # tables that stay on the node and are named in the result


class FailoverNode(Paged):
    node: str
    reason: str
    force: bool = False
    targets: tuple[str, ...] = ()
    max_parallel: int = PARALLEL_MAX
    """Tables at once: many, so that few wait to be opened until the rows of others are moved, or
    while the storage of others is gone."""
    cancelled: tuple[int, ...] = ()
    """Tables that a server of format 1 was told to leave where they are."""

    @model_validator(mode="before")
    @classmethod
    def _of_named_children(cls, data: Any) -> Any:
        """Format 1: `waiting`, `running` and `done`, each a map of table ids to children."""
        if not isinstance(data, Mapping) or "waiting" not in data:
            return data
        rest = {name: data[name] for name in data if name not in ("waiting", "running", "done")}
        begun = len(data["running"]) + len(data["done"])
        return {**rest, "named": bool(data["waiting"]), "begun": begun, "rounds": 0}


async def look(state: FailoverNode, context: Context) -> Outcome[FailoverNode]:
    """Ends, unless a table still has a region on the node that a child may move."""
    tried = state.rounds > 0 and state.begun == state.begun_before
    empty = not await first_inside(context, DatanodeTableKey.under(state.node), 1)
    if empty or tried or state.rounds == ROUNDS_MAX:
        return Done(state, await _result(state, context))
    return await next_round(state, context)


async def _result(state: FailoverNode, context: Context) -> dict[str, Any]:
    """Returns the counts of a failover that is over. `moves`: the children that were begun; a table
    whose child failed has one more for each new try. `left`: the first tables that stay, with
    regions that the node leads; `copies`: tables of which it has copies alone."""
    first: list[int] = []
    count = copies = 0
    async for page in pages(
        context.ports.kv, DatanodeTableKey.under(state.node), deadline_ms=context.ports.deadline_ms
    ):
        tables = [DatanodeTableKey.parse(item.key).table_id for item in page.items]
        led = [table for table in tables if _leads(state, context, table)]
        first += led[: LEFT_TOLD_MAX - len(first)]
        count += len(led)
        copies += len(tables) - len(led)
    result = {"node": state.node, "moves": state.begun, "left": first, "left_count": count}
    return {**result, "copies": copies} if copies else result


def _leads(state: FailoverNode, context: Context, table: int) -> bool:
    """Whether the node leads a region of the table, or may: this leader has not applied it yet."""
    held = context.ports.applied().nodes.get(state.node, Map()).get(table)
    return held is None or leaders_in(held) > 0


async def submit(state: FailoverNode, context: Context) -> Outcome[FailoverNode]:
    """Submits the children of one page of tables."""
    hidden: dict[tuple[str, str], bool] = {}
    return await submit_page(
        state,
        context,
        ChildPlan(
            inside=DatanodeTableKey.under(state.node),
            begin=partial(_begin, state, context, hidden),
            is_spared=partial(_is_spared, state, context),
            width=state.max_parallel,
        ),
    )


async def _begin(
    state: FailoverNode, context: Context, hidden: dict[tuple[str, str], bool], item: KeyValue
) -> None:
    """Submits the failover of one table, if it needs one. *hidden* caches, by schema, whether it is
    being dropped."""
    table = DatanodeTableKey.parse(item.key).table_id
    move = (
        None
        if await _is_spared(state, context, item)
        else await _move_of(state, table, context, hidden)
    )
    if move is not None:
        child = child_id(context.procedure, state.rounds, table)
        await context.children.submit(child, FAILOVER_TABLE.name, move.model_dump(mode="json"))


async def _is_spared(state: FailoverNode, context: Context, item: KeyValue) -> bool:
    """A table whose child was cancelled by request stays where it is; one whose rows are in the
    memory of the node, as long as that lives: a move would be their end; and one of which the node
    has copies alone."""
    return await _is_spared_table(state, context, DatanodeTableKey.parse(item.key).table_id)


async def _is_spared_table(state: FailoverNode, context: Context, table: int) -> bool:
    if not _leads(state, context, table):
        return True
    applied = context.ports.applied().tables.get(table)
    is_volatile = applied is not None and applied.info.is_volatile
    if (is_volatile and state.node in context.alive_nodes()) or table in state.cancelled:
        return True
    if await _is_moved_still(state, context, table):
        return True
    for before in range(state.rounds):
        end = await context.children.end_of(child_id(context.procedure, before, table))
        if end is not None and end.outcome is Ended.CANCELLED:
            return True
    return False


async def _is_moved_still(state: FailoverNode, context: Context, table: int) -> bool:
    """Whether a child of an earlier round is under way: what it does is not begun beside it."""
    living = await context.children.under_way()
    earlier = (child_id(context.procedure, before, table) for before in range(state.rounds))
    return any(child in living for child in earlier)


async def _move_of(
    state: FailoverNode, table: int, context: Context, hidden: dict[tuple[str, str], bool]
) -> FailoverTable | None:
    """Returns the failover of one table; None if it needs none.

    It needs none if the table has been dropped, or has left the node, meanwhile; nor if it is being
    dropped with its schema: moving its rows would serve nobody, and delay the drop.
    """
    info_key, key = TableInfoKey(table), TableRouteKey(table)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        return None
    led = tuple(r.region_id for r in route.region_routes if r.leader == state.node)
    if not led or await _is_hidden((info.catalog, info.schema_name), context, hidden):
        return None
    return FailoverTable(
        table_id=table,
        name=info.full_name,
        source=state.node,
        region_ids=led,
        reason=state.reason,
        force=state.force,
        targets=state.targets,
    )


async def _is_hidden(
    schema: tuple[str, str], context: Context, hidden: dict[tuple[str, str], bool]
) -> bool:
    """Whether *schema* is being dropped with all its tables, which nothing undoes."""
    if schema not in hidden:
        catalog_key, schema_key = CatalogNameKey(schema[0]), SchemaNameKey(*schema)
        snapshot = await context.snapshot(catalog_key, schema_key)
        above = (snapshot.get(catalog_key), snapshot.get(schema_key))
        hidden[schema] = any(record is not None and record.dropping is not None for record in above)
    return hidden[schema]


async def gather(state: FailoverNode, context: Context) -> Outcome[FailoverNode]:
    """Waits for the children. One of them may last for as long as files are lost, and the node may
    come back meanwhile, lead again and die again: then it does not wait longer, since nobody else
    begins a failover of the node."""
    while await context.children.under_way() and not await _is_due_again(state, context):
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_MS / 1000):
                await at_most(context, 0)
    return Goto("look", state)


async def _is_due_again(state: FailoverNode, context: Context) -> bool:
    """Whether the node is dead and leads a region of a table that no child moves. A node that dies
    more often than there are rounds waits for the end of this procedure."""
    if state.node in context.alive_nodes() or state.rounds >= ROUNDS_MAX - 1:
        return False
    following = state.model_copy(update={"rounds": state.rounds + 1})
    for table in context.ports.applied().nodes.get(state.node, Map()):
        if not await _is_spared_table(following, context, table):
            return True
    return False


def locks(state: FailoverNode) -> tuple[Lock, ...]:
    return (exclusive(node_key(state.node)),)


def resource(state: FailoverNode) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


FAILOVER_NODE = Kind(
    name="failover_node",
    state=FailoverNode,
    steps={
        "look": Step(look, to=frozenset({"submit"}), ends=True, waits=True),
        "submit": Step(submit, to=frozenset({"submit", "gather"}), waits=True),
        "gather": Step(gather, to=frozenset({"look"}), waits=True),
    },
    no_return="look",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=3_600_000,
    lane=AdmissionLane.REPAIR,
)
