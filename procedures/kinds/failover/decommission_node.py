"""decommission_node: removes a node whose disk is gone from the cluster, permanently.

A failover that it submits opens the node's regions elsewhere. Regions whose files were only on that
disk are lost, and stay lost. Copies on that disk are removed from their regions, also those of a
set, since no other procedure knows that they are gone, and a failover waits for them. Then one
transaction deletes the registration and stores the removal.
"""

from collections.abc import Iterator
from itertools import islice
from operator import not_

from pydantic import Field

from keys.commit.txn import Txn
from keys.model.cluster import DATANODE, NodeKey, Removal, RemovedNode, RemovedNodeKey
from keys.model.records import Lock, ProcedureOutcome, Resource
from keys.model.tables import DatanodeTableKey, RegionState
from procedures.context import Context
from procedures.kinds.copies.remove_copy import REMOVE_COPY, RemoveCopy
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.ports import ChildEnd
from procedures.steps.paged_children import child_id, rest_before_again

LOOK_MS = 500  # between two looks at the routes, while a failover is under way
COPIES_AT_ONCE = 64  # that leave their regions, one child for each


class DecommissionNode(ProcedureState):
    node: str
    reason: str
    by: str
    """The requester."""
    rounds: int = 0
    """Failovers that ended and left regions on the node."""
    releases: int = Field(default=0, exclude_if=not_)
    """Times that copies were looked for, which left their regions then."""


async def fail_over(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Submits a failover, unless the node leads no region. Waits until the node is dead, since a
    new leader considers every node alive at first."""
    await _until_dead(state, context)
    if _leads(state, context):
        move = FailoverNode(node=state.node, reason=state.reason)
        number = child_id(context.procedure, state.rounds, 0)
        await context.children.submit(number, FAILOVER_NODE.name, move.model_dump(mode="json"))
    return Goto("await_lost", state)


async def await_lost(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Waits until the node leads only lost regions. The failover may continue: it retries lost
    regions for as long as they are lost. Copies of regions that others lead are removed meanwhile:
    another lost node may lead one, and wait for that copy as this one waits for another."""
    child = child_id(context.procedure, state.rounds, 0)
    while True:
        end = await context.children.end_of(child)
        await _until_dead(state, context)
        if not _leads(state, context) or next(_copies(state, context), None) is not None:
            return Goto("release", state)
        if end is not None:
            await rest_before_again(context, state.rounds + 1)
            return Goto("fail_over", state.model_copy(update={"rounds": state.rounds + 1}))
        with context.waiting_for("child", child):
            await context.live.rest(LOOK_MS)


async def release(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Submits children that remove some more of the node's copies, also those of promoted regions,
    which are learners by now. A copy that is left after its child has ended is tried again."""
    await _until_dead(state, context)
    copies = tuple(islice(_copies(state, context), COPIES_AT_ONCE))
    if not copies:
        return Goto("await_lost" if _leads(state, context) else "remove", state)
    for copy in copies:
        child = _child_of(copy, state, context)
        await context.children.submit(child, REMOVE_COPY.name, copy.model_dump(mode="json"))
    ends = [await _end_of(_child_of(copy, state, context), context) for copy in copies]
    if any(end.outcome is not ProcedureOutcome.SUCCEEDED for end in ends):
        await rest_before_again(context, state.releases + 1)
    return Goto("release", state.model_copy(update={"releases": state.releases + 1}))


def _copies(state: DecommissionNode, context: Context) -> Iterator[RemoveCopy]:
    """The removals of the copies that the node has of regions led elsewhere."""
    for table in context.ports.applied().on_node(state.node):
        for region in table.route.region_routes:
            for copy in region.copies:
                if copy.node == state.node:
                    yield RemoveCopy(
                        table_id=table.info.table_id,
                        name=table.info.full_name,
                        region_id=region.region_id,
                        node=copy.node,
                        root=copy.root,
                        reason=state.reason,
                        forced=True,
                        gone=True,
                    )


def _child_of(copy: RemoveCopy, state: DecommissionNode, context: Context) -> str:
    return child_id(context.procedure, state.releases, int(copy.region_id))


async def _end_of(child: str, context: Context) -> ChildEnd:
    while (end := await context.children.end_of(child)) is None:
        with context.waiting_for("child", child):
            await context.live.rest(LOOK_MS)
    return end


async def remove(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Deletes the registration. If the node came back and was given regions, waits for them first.

    The routes are judged as this leader has applied them, which may be older than the snapshot. The
    transaction is refused if a route of the node has changed since, and the step judges again.
    """
    key, gone = NodeKey(DATANODE, state.node), RemovedNodeKey(DATANODE, state.node)
    snapshot = await context.snapshot(key, gone)
    while _is_alive(state, context) or _leads(state, context):
        with context.waiting_for("node", f"{state.node} is heard, or leads regions"):
            await context.live.rest(LOOK_MS)
        snapshot = await context.snapshot(key, gone)
    if next(_copies(state, context), None) is not None:
        return Goto("release", state)
    node = snapshot.get(key)
    if node is None:
        return Goto("tell", state)
    now_ms = context.ports.clock.wall_ms()
    removal = Removal(at_ms=now_ms, by=state.by, reason=state.reason, lost=True)
    txn = Txn.on(snapshot).delete(key).put(gone, RemovedNode(node=node, removal=removal))
    routes, applied = DatanodeTableKey.under(state.node), context.ports.applied().revision
    return Goto("tell", state, txn.while_unchanged(routes, applied))


async def tell(state: DecommissionNode, context: Context) -> Outcome[DecommissionNode]:
    """Updates the leader's state of the node from the stored removal."""
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
    """Returns no locks: the failover of the node, or one that is under way already, takes its
    lock."""
    return ()


def resource(state: DecommissionNode) -> Resource:
    return Resource(type="node", id=state.node, name=state.node)


DECOMMISSION_NODE = Kind(
    name="decommission_node",
    state=DecommissionNode,
    steps={
        "fail_over": Step(fail_over, to=frozenset({"await_lost"}), waits=True),
        "await_lost": Step(await_lost, to=frozenset({"fail_over", "release"}), waits=True),
        "release": Step(release, to=frozenset({"await_lost", "release", "remove"}), waits=True),
        "remove": Step(remove, to=frozenset({"release", "tell"}), waits=True),
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
