"""drain_node: moves every copy from a node that lives, and adds each elsewhere before it goes.

Each copy of a region moves by a child (move_copy), to a node that its placement allows and that
has none of that region; a region that the node leads is led by another copy first, by a planned
switch. An only copy moves in the same way: the region has two meanwhile, and its minimum stays one.
So no write is refused, and no copy in sync is missing meanwhile (docs/decisions/0403). A few move
at once, and fewer to one node.

Regions of dropped tables move too, each by a child (move_dropped, docs/decisions/0407), and stay
dropped. As its own request says, the drain waits instead until they are purged, purges them, or
leaves them there.

Regions that could not move in any of the rounds fail over in the end, each with a pause. Rows in
the memory of the node stay there. A cancel begins no more moves; those that were begun go on by
themselves, and can be cancelled each.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from operator import eq

from pydantic import Field

from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.records import Lock, ProcedureOutcome, Resource
from metasrv_base.concurrency.turns import by_turns
from procedures.context import Context
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.moves.arrivals import DrainRules
from procedures.kinds.moves.copy_move import MoveCopy
from procedures.kinds.moves.drain_plan import (
    dropped_moves_due,
    dropped_on,
    left,
    moves_due,
)
from procedures.kinds.moves.leaving_copies import LeavingGroups, leaving_groups, tables_on
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.kinds.moves.move_dropped import MOVE_DROPPED
from procedures.kinds.tables.purge_table import PURGE_TABLE, PurgeTable
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.paged_children import at_most, child_id, rest_before_again

ROUNDS_MAX = 8  # over the copies of the node; those that failed as often are reported
LEFT_TOLD_MAX = 64  # regions that stay on the node and are named in the result
DROPPED_MAX = 64  # dropped tables that are purged at once, or named in the result
NAMED = 4  # of them in a wait
DROPPED_LOOK_MS = 10_000  # between two looks at all tables that are dropped
DEADLINE_MS = 14 * 86_400_000
"""The time for which rows may move, and dropped tables be waited for: they are kept for 7 days.
After it no more moves begin."""


class DroppedTables(StrEnum):
    """The ways in which a drain leaves no dropped table behind, or some."""

    MOVE = "move"
    """Their regions move, so that an undrop finds them. The drain waits for those that cannot."""
    WAIT = "wait"
    """The drain waits until they are purged, or undropped."""
    PURGE = "purge"
    """The drain purges them before their time: nothing undrops them."""
    KEEP = "keep"
    """They stay on the node, which cannot be decommissioned before they are purged."""


_is_kept = partial(eq, DroppedTables.KEEP)


class DrainNode(ProcedureState):
    node: str
    reason: str
    targets: tuple[str, ...] = ()
    """Nodes that may get copies and regions; empty: any."""
    rounds: int = 0
    moves: int = 0
    """Children that moved a copy, or tried to, over all rounds."""
    dropped: DroppedTables = Field(default=DroppedTables.KEEP, exclude_if=_is_kept)
    """The end of dropped tables that have regions on the node."""


async def move(state: DrainNode, context: Context) -> Outcome[DrainNode]:
    """Has children move the copies, each region once in a round, some at a time: those of one
    partition group after each other."""
    if state.rounds:
        await rest_before_again(context, state.rounds)
    begun: dict[str, tuple[str, str]] = {}
    groups = await by_turns(leaving_groups(context.ports.applied(), state.node))
    while True:
        for change in await _due(state, context, begun, groups):
            child = child_id(context.procedure, state.rounds, int(change.region_id))
            begun[change.region_id] = child, change.to_node
            await context.children.submit(child, MOVE_COPY.name, change.model_dump(mode="json"))
        living = await context.children.under_way()
        if not living:
            break
        await at_most(context, len(living) - 1)
    new = state.model_copy(update={"rounds": state.rounds + 1, "moves": state.moves + len(begun)})
    is_over = new.rounds >= ROUNDS_MAX or not await _left(state, context)
    after = "fail_over" if state.dropped is DroppedTables.KEEP else "await_dropped"
    return Goto(after if is_over else "move", new)


async def _due(
    state: DrainNode,
    context: Context,
    begun: Mapping[str, tuple[str, str]],
    groups: LeavingGroups,
) -> list[MoveCopy]:
    """The moves to begin now; none while as many are under way as may be."""
    living = set(await context.children.under_way())
    arriving = {region: node for region, (child, node) in begun.items() if child in living}
    rules = DrainRules(state.node, state.targets, arriving, arriving)
    nodes = context.ports.placement.nodes()
    due = moves_due(context.ports.applied(), nodes, rules, groups, state.reason)
    return await by_turns(due)


async def _left(state: DrainNode, context: Context) -> list[str]:
    return await by_turns(left(context.ports.applied(), state.node, LEFT_TOLD_MAX))


async def await_dropped(state: DrainNode, context: Context) -> Outcome[DrainNode]:
    """Waits until the node has no region of a dropped table. If they are to move, or to be purged,
    has children do that, which may take several rounds. Regions of a table that is undropped are to
    move like others."""
    awaited = set[int]()
    while tables := await _dropped(state, context):
        awaited |= {each.info.table_id for each in tables}
        is_to_move = state.dropped is DroppedTables.MOVE
        begun = await (_moved(state, context) if is_to_move else _purged(state, context, tables))
        if not begun or await _have_failed(context, begun):
            await _rest_for(tables, context)
        if begun:
            moves = state.moves + (len(begun) if is_to_move else 0)
            new = state.model_copy(update={"rounds": state.rounds + 1, "moves": moves})
            return Goto(_after(state, context, awaited, "await_dropped"), new)
    return Goto(_after(state, context, awaited, "fail_over"), state)


async def _rest_for(tables: Sequence[CatalogTable], context: Context) -> None:
    names = ", ".join(f"{each.info.full_name} ({each.info.table_id})" for each in tables[:NAMED])
    with context.waiting_for("dropped_table", names):
        await context.live.rest(DROPPED_LOOK_MS)


def _after(state: DrainNode, context: Context, awaited: Iterable[int], step: str) -> str:
    """Returns the next step of the drain: `move` where a table that was dropped is back, else
    *step*."""
    here = tables_on(context.ports.applied(), state.node)
    return "move" if any(table in here for table in awaited) else step


async def _purged(state: DrainNode, context: Context, tables: Iterable[CatalogTable]) -> list[str]:
    """Has children purge those of *tables* whose nodes are all alive, where they are to be purged.
    Returns the children."""
    alive, begun = context.alive_nodes(), list[str]()
    for table in tables if state.dropped is DroppedTables.PURGE else ():
        if table.dropped_by is None or not alive.issuperset(table.route.numbers_by_node()):
            continue
        change = PurgeTable.of(table)
        begun.append(child_id(context.procedure, state.rounds, change.table_id))
        await context.children.submit(begun[-1], PURGE_TABLE.name, change.model_dump(mode="json"))
    await at_most(context, 0)
    return begun


async def _moved(state: DrainNode, context: Context) -> list[str]:
    """Has children move regions of dropped tables, each once, some at a time. Returns the
    children."""
    begun: dict[str, tuple[str, str]] = {}
    while True:
        living = set(await context.children.under_way())
        arriving = {region: node for region, (child, node) in begun.items() if child in living}
        rules = DrainRules(state.node, state.targets, begun, arriving)
        nodes = context.ports.placement.nodes()
        due = dropped_moves_due(context.ports.applied(), nodes, rules, state.reason)
        for change in await by_turns(due):
            child = child_id(context.procedure, state.rounds, int(change.region_id))
            begun[change.region_id] = child, change.to_node
            await context.children.submit(child, MOVE_DROPPED.name, change.model_dump(mode="json"))
        living = set(await context.children.under_way())
        if not living:
            return [child for child, _ in begun.values()]
        await at_most(context, len(living) - 1)


async def _have_failed(context: Context, children: Iterable[str]) -> bool:
    """Whether one of them did not do what it was begun for: the next round is after a pause."""
    ends = [await context.children.end_of(child) for child in children]
    return any(
        end is None
        or end.outcome is not ProcedureOutcome.SUCCEEDED
        or not (end.result or {}).get("moved", True)
        for end in ends
    )


async def _dropped(state: DrainNode, context: Context) -> list[CatalogTable]:
    return await by_turns(dropped_on(context.ports.applied(), state.node, DROPPED_MAX))


async def fail_over(state: DrainNode, context: Context) -> Outcome[DrainNode]:
    """Has a child move the regions that the node leads still, by a failover."""
    if context.ports.applied().led_by(state.node):
        change = FailoverNode(node=state.node, reason=state.reason, targets=state.targets)
        child = child_id(context.procedure, state.rounds, 0)
        await context.children.submit(child, FAILOVER_NODE.name, change.model_dump(mode="json"))
    return Goto("gather", state)


async def gather(state: DrainNode, context: Context) -> Outcome[DrainNode]:
    """Waits for that child."""
    await at_most(context, 0)
    end = await context.children.end_of(child_id(context.procedure, state.rounds, 0))
    failover = None if end is None else end.result
    result = {"node": state.node, "moves": state.moves, "left": await _left(state, context)}
    dropped = [each.info.table_id for each in await _dropped(state, context)]
    return Done(
        state, {**result, "failover": failover, **({"dropped": dropped} if dropped else {})}
    )


def locks(state: DrainNode) -> tuple[Lock, ...]:
    """No locks: a failover of the node, if it dies, takes its lock."""
    return ()


def resource(state: DrainNode) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


DRAIN_NODE = Kind(
    name="drain_node",
    state=DrainNode,
    steps={
        "move": Step(move, to=frozenset({"move", "await_dropped", "fail_over"}), waits=True),
        "await_dropped": Step(
            await_dropped, to=frozenset({"await_dropped", "move", "fail_over"}), waits=True
        ),
        "fail_over": Step(fail_over, to=frozenset({"gather"}), waits=True),
        "gather": Step(gather, waits=True),
    },
    no_return="fail_over",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=DEADLINE_MS,
    lane=AdmissionLane.REPAIR,
)
"""Undo has nothing to do: what was moved stays."""
