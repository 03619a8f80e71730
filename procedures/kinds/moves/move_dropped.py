"""move_dropped: moves a copy of a region of a dropped table to another node.

The table stays dropped, and nobody reads or writes it. Its region wakes: the nodes of the route
below `__removed-` open it at the next epoch, without a lease. Then it moves like one of a living
table: a learner is added, fetches the files and joins the set, leads if the source has led, and the
source is removed (docs/decisions/0407). Then the region is closed again.

It holds no lock of the table, so an undrop or a purge never waits for rows: each step compares the
route, and the move ends where the table is dropped no more. A cancel, or the deadline, closes the
region and removes the added copy, until the source has left the route.
"""

from dataclasses import replace

from keys.model.records import Lock, Resource
from keys.model.tables import CopyRole, RegionCopy, RegionState
from metasrv_base.errors import Conflict, Unavailable
from procedures.context import Context
from procedures.kinds.failover.next_leader import led_by, must_be_in_set
from procedures.kinds.moves.copy_move import root_on
from procedures.kinds.moves.dropped_move import (
    MoveDropped,
    applied_dropped,
    close_woken,
    has_started_again,
    is_needed,
    moved,
    must_be_alive,
    open_woken,
    read_anywhere,
    read_dropped,
    tell_nodes,
)
from procedures.locking.locks import copies_key, exclusive
from procedures.machine import AdmissionLane, Back, Goto, Kind, Outcome, Step
from procedures.steps.copies.copy_destination import (
    COPY_DEADLINE_MS,
    rest_while_fetched,
    root_at,
)
from procedures.steps.copies.copy_leavings import delete_left
from procedures.steps.copies.copy_orders import CopyTarget, create_copy, order_copies
from procedures.steps.copies.copy_routes import copy_root, without_copy
from procedures.steps.copies.dropped_regions import is_awake

TELL_LOOKS = 8
"""Looks between two rounds of orders to nodes that may have started again: no heartbeat tells them
to open a region of a dropped table."""


async def wake(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Raises the epoch, and says that the region is opening. Raises Conflict("action-not-allowed")
    for a region that is lost, or borrows a root; Unavailable while its leader is not alive."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    region = dropped.region
    if state.root not in region.roots:
        return moved(state, region, ())
    facts = {"region_id": region.region_id, "action": "move_dropped"}
    if region.state is RegionState.LOST or region.borrows or region.unverified:
        what = "it borrows a root" if region.borrows else "it is lost"
        raise Conflict("action-not-allowed", state=what, **facts)
    if region.leader not in context.alive_nodes():
        raise Unavailable("node-not-eligible", reasons={region.leader: "not alive"})
    update = {"epoch": region.epoch + 1, "state": RegionState.OPENING}
    return Goto("open", state, dropped.changed(region.model_copy(update=update)))


async def open_region(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Orders the nodes to open it. Raises Unavailable until the leader has: the one of the route,
    or another copy of the set where that has lost its files."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    if has_started_again(dropped.region, context):
        return Goto("wake", state)
    if (elsewhere := await open_woken(dropped, context)) is not None:
        return Goto("open", state, dropped.changed(elsewhere))
    return Goto("add", state)


async def add(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Names the learner at the destination. Nothing is added where that has a copy in sync. Raises
    Conflict("node-not-eligible")."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    region, here = dropped.region, root_on(dropped.region, state.to_node)
    if here is not None and state.to_node in region.in_sync:
        return Goto("join", state.model_copy(update={"to_root": here}))
    if here is not None and here == state.to_root:
        return Goto("make", state)
    folder = root_at(state.to_node, dropped.info, context)
    root = copy_root(folder, region, region.copies_version + 1)
    learner = RegionCopy(node=state.to_node, root=root, role=CopyRole.LEARNER)
    kept = tuple(copy for copy in region.copies if copy.node != state.to_node)
    new = {"to_root": root, "replaces": here, "is_added": True}
    txn = dropped.changed(region.with_copies((*kept, learner)))
    return Goto("make", state.model_copy(update=new), txn)


async def make(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Orders the destination to make the copy, and tells the leader. Raises Unavailable."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    assert state.to_root is not None
    copy = CopyTarget(dropped.info, dropped.region, state.to_node, state.to_root)
    must_be_alive(state, context)
    (await order_copies(context, [copy], create_copy)).must_all_succeed()
    return Goto("join", state)


async def join(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Waits until the copy at the destination is in the set. Raises Conflict where the route names
    it no more."""
    looks = 0
    while True:
        region = applied_dropped(state, context)
        if region is None:
            return moved(state, None, ())
        if state.to_root not in region.roots:
            facts = {"region_id": region.region_id, "action": "move_dropped"}
            raise Conflict("action-not-allowed", state="its new copy was removed", **facts)
        if state.to_node in region.in_sync:
            return Goto("switch" if region.root == state.root else "remove", state)
        if has_started_again(region, context):
            return Goto("wake", state)
        if looks % TELL_LOOKS == 0:
            await tell_nodes(state, context)
        looks += 1
        await rest_while_fetched(context, state.to_node, state.region_id, looks)


async def switch(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Names the copy at the destination as the leader, at the next epoch. It has all rows: it is in
    the set, and nobody writes. The source follows it. Raises Conflict for one that is not in the
    set, Unavailable while its node is not alive."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    region = dropped.region
    if region.root != state.root:
        return Goto("lead", state)
    if state.to_node not in region.in_sync:
        return Goto("join", state)
    assert state.to_root is not None
    must_be_alive(state, context)
    copy = must_be_in_set(region, state.to_node, state.to_root)
    return Goto("lead", state, dropped.changed(led_by(region, copy, former=CopyRole.IN_SYNC)))


async def lead(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Orders the new leader to open: the source goes once that was done. One that has started again
    opens at another epoch. One that has lost its files is made anew."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    region = dropped.region
    if has_started_again(region, context):
        raised = region.model_copy(update={"epoch": region.epoch + 1})
        return Goto("lead", state, dropped.changed(raised))
    if (elsewhere := await open_woken(dropped, context)) is not None:
        return Goto("make", state, dropped.changed(elsewhere))
    return Goto("remove", state)


async def remove(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Removes the source from the route, and says that the region is as it was when the table was
    dropped. Its commit is the point of no return. Raises Unavailable while the destination is not
    alive: its disk may be lost, and rows be in the source alone."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return moved(state, None, ())
    region = dropped.region
    if state.root not in region.roots:
        return Goto("close", state)
    if state.to_node not in region.in_sync:
        return Goto("join", state)
    if region.root == state.root:
        return Goto("switch", state)
    must_be_alive(state, context)
    left = without_copy(region, state.root)
    asleep = left.model_copy(update={"state": RegionState.OPEN})
    return Goto("close", state, dropped.changed(asleep))


async def close(state: MoveDropped, context: Context) -> Outcome[MoveDropped]:
    """Closes the region on its nodes, unless the table was undropped meanwhile, and deletes the
    folder of the source, in either case. It stays if the node is gone; then it is an orphan."""
    dropped = await read_dropped(state, context)
    if dropped is not None:
        await close_woken(dropped, context)
        info, region = dropped.info, dropped.region
    elif (table := await read_anywhere(state, context)) is not None:
        info, region = table
    else:
        return moved(state, None, ())
    source = CopyTarget(info, region, state.from_node, state.root)
    stays = await delete_left(context, source)
    if state.replaces is not None:
        stays += await delete_left(
            context, replace(source, node=state.to_node, root=state.replaces)
        )
    return moved(state, region, stays)


async def put_back(state: MoveDropped, context: Context) -> Back | None:
    """Closes the region, removes the added copy from the route unless it leads or is needed by now,
    and deletes its folder."""
    dropped = await read_dropped(state, context)
    if dropped is None:
        return None
    region = dropped.region
    if is_awake(region):
        await close_woken(dropped, context)
        if state.is_added and state.to_root is not None and not is_needed(state, region, context):
            region = without_copy(region, state.to_root)
        return Back(dropped.changed(region.model_copy(update={"state": RegionState.OPEN})))
    for root in (state.to_root if state.is_added else None, state.replaces):
        if root is not None:
            await delete_left(context, CopyTarget(dropped.info, region, state.to_node, root))
    return None


def locks(state: MoveDropped) -> tuple[Lock, ...]:
    """No lock of the table: an undrop or a purge comes between."""
    return (exclusive(copies_key(state.region_id)),)


def resource(state: MoveDropped) -> Resource:
    return Resource.table(state.table_id, state.name)


MOVE_DROPPED = Kind(
    name="move_dropped",
    state=MoveDropped,
    steps={
        "wake": Step(wake, to=frozenset({"open"}), undo=put_back, ends=True),
        "open": Step(open_region, to=frozenset({"wake", "open", "add"}), ends=True),
        "add": Step(add, to=frozenset({"make", "join"}), ends=True),
        "make": Step(make, to=frozenset({"join"}), ends=True),
        "join": Step(join, to=frozenset({"wake", "switch", "remove"}), ends=True, waits=True),
        "switch": Step(switch, to=frozenset({"lead", "join"}), ends=True),
        "lead": Step(lead, to=frozenset({"lead", "make", "remove"}), ends=True),
        "remove": Step(remove, to=frozenset({"join", "switch", "close"}), ends=True),
        "close": Step(close),
    },
    no_return="remove",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=COPY_DEADLINE_MS,
    lane=AdmissionLane.REPAIR,
)
