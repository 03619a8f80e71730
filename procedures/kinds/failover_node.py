"""failover_node: every region leaves a node, one child for each table it has regions of.

The parent holds no lock that a child of another parent could want, and takes no place while it
waits. Tables that arrive meanwhile are found by looking again before the end.
"""

from functools import partial

from pydantic import Field

from base.fanout import fan_out
from base.wire.procedures import PARALLEL_MAX
from keys.records import Lock, Resource
from keys.records import Outcome as Ended
from keys.scan import scan
from keys.tables import DatanodeTableKey, TableInfoKey, TableRouteKey
from procedures.context import Context
from procedures.kinds.failover_table import FAILOVER_TABLE, FailoverTable
from procedures.locks import exclusive, node_key
from procedures.machine import Done, Goto, Kind, Lane, Outcome, ProcedureState, Step

SUBMITS_AT_ONCE_MAX = 64
ROUNDS_MAX = 8  # looks at the node; a table that fails that often is reported, not tried for ever


class FailoverNode(ProcedureState):
    node: str
    reason: str
    force: bool = False
    targets: tuple[str, ...] = ()
    max_parallel: int = PARALLEL_MAX
    """Tables at once: all, so that no table waits to be opened until the rows of others are
    moved, or while the storage of others is gone."""
    rounds: int = 0
    waiting: dict[int, str] = Field(default_factory=dict)
    """Table id -> id of the child that will fail it over: chosen before it is submitted."""
    running: dict[int, str] = Field(default_factory=dict)
    done: dict[int, str] = Field(default_factory=dict)
    cancelled: tuple[int, ...] = ()
    """Tables whose child was cancelled by request: they are left where they are."""


async def look(state: FailoverNode, at: Context) -> Outcome[FailoverNode]:
    """Which tables still have a region led by the node."""
    held = DatanodeTableKey.under(state.node)
    items, _ = await scan(at.ports.kv, held, deadline_ms=at.ports.deadline_ms)
    tables = [DatanodeTableKey.parse(item.key).table_id for item in items]
    left = [table for table in tables if table not in state.cancelled]
    if not left or state.rounds == ROUNDS_MAX:
        done = [{"table_id": table, "procedure_id": child} for table, child in state.done.items()]
        return Done(state, {"node": state.node, "tables": done, "left": tables})
    children = {table: at.ports.ids.procedure_id() for table in left}
    new = state.model_copy(update={"waiting": children, "rounds": state.rounds + 1})
    return Goto("submit", new)


async def submit(state: FailoverNode, at: Context) -> Outcome[FailoverNode]:
    """The next few children. Their ids are in the record, so a resumed parent finds the same."""
    batch = dict(list(state.waiting.items())[: state.max_parallel])
    running: dict[int, str] = {}

    async def begin(table: int, child: str) -> None:
        move = await _move_of(state, table, at)
        if move is not None:
            await at.children.submit(child, FAILOVER_TABLE.name, move.model_dump(mode="json"))
        if move is not None or await at.children.exists(child):
            running[table] = child

    # Not one after the other: the last would wait behind every commit of the first.
    await fan_out([partial(begin, *one) for one in batch.items()], at_once=SUBMITS_AT_ONCE_MAX)
    rest = {table: child for table, child in state.waiting.items() if table not in batch}
    return Goto("gather", state.model_copy(update={"waiting": rest, "running": running}))


async def _move_of(state: FailoverNode, table: int, at: Context) -> FailoverTable | None:
    """None: the table has been dropped, or has left the node, meanwhile."""
    info_key, key = TableInfoKey(table), TableRouteKey(table)
    seen = await at.snapshot(info_key, key)
    info, route = seen.get(info_key), seen.get(key)
    if info is None or route is None:
        return None
    led = tuple(r.region_id for r in route.region_routes if r.leader == state.node)
    if not led:
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


async def gather(state: FailoverNode, at: Context) -> Outcome[FailoverNode]:
    with at.waiting_for("child", ", ".join(state.running.values())):
        ends = await at.children.wait(tuple(state.running.values()))
    ended = {end.procedure: end.outcome for end in ends}
    cancelled = [t for t, child in state.running.items() if ended[child] is Ended.CANCELLED]
    new = state.model_copy(
        update={
            "running": {},
            "done": {**state.done, **state.running},
            "cancelled": (*state.cancelled, *cancelled),
        }
    )
    return Goto("submit" if state.waiting else "look", new)


def locks(state: FailoverNode) -> tuple[Lock, ...]:
    return (exclusive(node_key(state.node)),)


def resource(state: FailoverNode) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


FAILOVER_NODE = Kind(
    name="failover_node",
    state=FailoverNode,
    steps={
        "look": Step(look, to=frozenset({"submit"}), ends=True),
        "submit": Step(submit, to=frozenset({"gather"})),
        "gather": Step(gather, to=frozenset({"submit", "look"}), waits=True),
    },
    no_return="look",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=3_600_000,
    lane=Lane.REPAIR,
)
