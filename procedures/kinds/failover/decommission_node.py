"""decommission_node: a node whose disk is gone leaves the cluster for good.

A failover that it submits opens the node's regions elsewhere. Those whose files were on that disk
alone are lost, and stay so. Then one transaction deletes the registration and keeps the removal.
"""

from keys.commit.txn import Txn
from keys.model.cluster import DATANODE, NodeKey, Removal, RemovedNode, RemovedNodeKey
from keys.model.records import Lock, Resource
from keys.model.tables import DatanodeTableKey, RegionState
from procedures.context import Context
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.paged_children import child_id, rest_before_again

LOOK_MS = 500  # between two looks at the routes, while a failover is under way


class DecommissionNode(ProcedureState):
    node: str
    reason: str
    by: str
    """The requester."""
    rounds: int = 0
    """Failovers that ended and left regions on the node."""


async def fail_over(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Submits a failover, unless the node leads nothing. Waits until the node is dead: a new leader
    takes every node for alive at first."""
    await _until_dead(state, context)
    if _leads(state, context):
        move = FailoverNode(node=state.node, reason=state.reason)
        number = child_id(context.procedure, state.rounds, 0)
        await context.children.submit(number, FAILOVER_NODE.name, move.model_dump(mode="json"))
    return Goto("await_lost", state)


async def await_lost(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Waits until the node leads only lost regions. The failover may continue: it retries lost
    regions for as long as they are lost."""
    child = child_id(context.procedure, state.rounds, 0)
    while True:
        end = await context.children.end_of(child)
        await _until_dead(state, context)
        if not _leads(state, context):
            return Goto("remove", state)
        if end is not None:
            await rest_before_again(context, state.rounds + 1)
            return Goto("fail_over", state.model_copy(update={"rounds": state.rounds + 1}))
        with context.waiting_for("child", child):
            await context.live.rest(LOOK_MS)


async def remove(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Deletes the registration. A node that came back meanwhile, and was given regions, is waited
    for once more.

    The routes were judged as this leader has applied them, which may be older than the snapshot:
    every change of a route of the node since then refuses the transaction, and it is judged again.
    """
    key, gone = NodeKey(DATANODE, state.node), RemovedNodeKey(DATANODE, state.node)
    snapshot = await context.snapshot(key, gone)
    while _is_alive(state, context) or _leads(state, context):
        with context.waiting_for("node", f"{state.node} is heard, or leads regions"):
            await context.live.rest(LOOK_MS)
        snapshot = await context.snapshot(key, gone)
    node = snapshot.get(key)
    if node is None:
        return Goto("tell", state)
    now_ms = context.ports.clock.wall_ms()
    removal = Removal(at_ms=now_ms, by=state.by, reason=state.reason, lost=True)
    txn = Txn.on(snapshot).delete(key).put(gone, RemovedNode(node=node, removal=removal))
    routes, applied = DatanodeTableKey.under(state.node), context.ports.applied().revision
    return Goto("tell", state, txn.while_unchanged(routes, applied))


async def tell(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """The leader takes over what is stored of the node."""
    await context.ports.placement.reload(state.node)
    return Done(state, {"node": state.node, "reason": state.reason, "rounds": state.rounds})


async def _until_dead(state: DecommissionNode, context: Context) -> None:
    while _is_alive(state, context):
        with context.waiting_for("node", f"{state.node} is heard"):
            await context.live.rest(LOOK_MS)


def _is_alive(state: DecommissionNode, context: Context) -> bool:
    return any(node.alive for node in context.ports.placement.nodes() if node.node_id == state.node)


def _leads(state: DecommissionNode, context: Context) -> bool:
    """Whether the node leads a region that is not known to be lost."""
    return any(
        region.leader == state.node and region.state is not RegionState.LOST
        for table in context.ports.applied().on_node(state.node)
        for region in table.route.region_routes
    )


def locks(state: DecommissionNode) -> tuple[Lock, ...]:
    """None: its failover, or one that is under way already, takes the lock of the node."""
    return ()


def resource(state: DecommissionNode) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


DECOMMISSION_NODE = Kind(
    name="decommission_node",
    state=DecommissionNode,
    steps={
        "fail_over": Step(fail_over, to=frozenset({"await_lost"}), waits=True),
        "await_lost": Step(await_lost, to=frozenset({"fail_over", "remove"}), waits=True),
        "remove": Step(remove, to=frozenset({"tell"}), waits=True),
        "tell": Step(tell),
    },
    no_return="remove",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=3_600_000,
    lane=AdmissionLane.REPAIR,
)
"""Undo has nothing to do: a failover that was begun goes on by itself."""
