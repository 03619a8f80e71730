"""move_copy: moves a copy of a region from one node to another, and adds before it removes.

Its children do the work: add_copy makes a learner at the destination, which joins the set by itself
(docs/protocols.md P5.10); switch_leader has another copy lead if the source leads; remove_copy then
removes the source, in a transaction that requires the new copy to be in the set. So at every moment
as many copies are in sync as before the move (docs/decisions/0399). The source is the copy of its
node, in whatever root a truncate has put it (docs/decisions/0425).

It holds no lock of the route, since the rows may take hours to arrive. One of its own orders the
moves of a region. A cancel, or the deadline, removes the added copy again, until the removal of the
source begins.
"""

from keys.model.records import Lock, Resource
from keys.model.tables import RegionRoute, TableInfo, TableInfoKey, TableRouteKey
from metasrv_base.errors import Conflict, NotFound
from procedures.context import Context
from procedures.kinds.copies.add_copy import ADD_COPY
from procedures.kinds.copies.remove_copy import REMOVE_COPY, refusal_of
from procedures.kinds.failover.switch_leader import SWITCH_LEADER
from procedures.kinds.moves.copy_move import (
    ChildNumber,
    Destination,
    MoveCopy,
    addition,
    applied_region,
    destination_of,
    has_succeeded,
    is_needed_for_good,
    must_be_passing,
    removal,
    root_on,
    run_child,
    switch_from,
    with_source,
)
from procedures.kinds.moves.move_back import lead_back, remove_added
from procedures.locking.locks import copies_key, exclusive
from procedures.machine import AdmissionLane, Done, Goto, Kind, Outcome, Step
from procedures.quorum import minimum_of
from procedures.steps.copies.copy_destination import (
    COPY_DEADLINE_MS,
    LOOK_MS,
    rest_while_fetched,
)
from procedures.steps.copies.copy_orders import takes_writes
from procedures.steps.copies.copy_routes import must_have_region
from procedures.steps.paged_children import rest_before_again


async def check(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """Looks at the destination. Raises NotFound for a table or region that is gone, and as
    `destination_of`."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        raise NotFound("table-not-found", table_id=state.table_id)
    region = must_have_region(route, state.region_id)
    state = with_source(state, region)
    destination = destination_of(info, region, state.root, state.to_node)
    here = root_on(region, state.to_node)
    new: dict[str, object] = {"destination": destination}
    if destination is Destination.MEMBER:
        return Goto("join", state.model_copy(update={**new, "to_root": here}))
    in_sync = min(info.replicas, len(region.in_sync))
    least = min(minimum_of(info, region), in_sync)
    new |= {"replaces": here, "in_sync": in_sync, "least": least}
    return Goto("add", state.model_copy(update=new))


async def add(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """Has a child add the learner. One that failed and may succeed is begun anew; raises the error
    of any other."""
    child = (state.rounds, ChildNumber.ADD)
    end = await run_child(context, child, ADD_COPY.name, addition(state))
    if not has_succeeded(end):
        must_be_passing(end, ADD_COPY.name)
        await rest_before_again(context, state.failed + 1)
        return Goto("add", state.after_child(has_failed=True))
    root = _root_there(state, context)
    new = state.after_child(has_failed=False)
    return Goto("join", new.model_copy(update={"to_root": root}))


async def join(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """Waits until the copy at the destination is in the set. Raises Conflict where the route names
    it no more, NotFound for a table that is gone or dropped."""
    looks = 0
    while True:
        looks += 1
        root = _root_there(state, context)
        _, region = applied_region(state, context)
        if state.to_node in region.in_sync:
            return Goto("switch", state.model_copy(update={"to_root": root}))
        await rest_while_fetched(context, state.to_node, state.region_id, looks)


async def switch(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """If the source leads, has a child switch the leader: to the destination, or, if that has
    failed, to the copy in sync that suits best. Past the point of no return it ends where `remove`
    does."""
    if context.has_passed and (early := _early_end(state, context)) is not None:
        return early
    _, region = applied_region(state, context)
    state = with_source(state, region)
    if region.root != state.root:
        return Goto("settle", state.model_copy(update={"failed": 0}))
    to_node = None if state.failed else state.to_node
    change = switch_from(state, region, state.from_node, to_node)
    child = (state.rounds, ChildNumber.SWITCH)
    end = await run_child(context, child, SWITCH_LEADER.name, change)
    if not has_succeeded(end):
        await rest_before_again(context, state.failed + 1)
    return Goto("switch", state.after_child(has_failed=not has_succeeded(end)))


async def settle(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """Waits until the region can do without the source: a new leader serves once the former one has
    followed it. Its commit is the point of no return. Raises Conflict where the route names no copy
    at the destination any more: one that was made anew meanwhile has another root; and where the
    source is needed for good. Past the point of no return it ends where `remove` does."""
    while True:
        if context.has_passed and (early := _early_end(state, context)) is not None:
            return early
        info, region = applied_region(state, context)
        state = with_source(state, region)
        if state.root not in region.roots:
            return Goto("remove", state)
        state = state.model_copy(update={"to_root": _root_there(state, context)})
        if region.root == state.root:
            return Goto("remove", state)
        refusal = refusal_of(info, region, removal(state), context.alive_nodes())
        if refusal is None and await takes_writes(context, info, region):
            return Goto("remove", state)
        if refusal is not None and is_needed_for_good(state, info, region):
            facts = {"action": "move_copy", "state": refusal}
            raise Conflict("action-not-allowed", region_id=state.region_id, **facts)
        refusal = refusal or f"{region.leader}, which leads, does not take writes yet"
        with context.waiting_for("copy", f"{state.from_node}: {refusal}"):
            await context.live.rest(LOOK_MS)


async def remove(state: MoveCopy, context: Context) -> Outcome[MoveCopy]:
    """Has a child remove the source; one that failed is begun anew. Where the source leads again,
    another copy is to lead first. Ends where the table is gone or dropped. Where another has
    removed the copy at the destination, or so many that the source is needed for good, the source
    stays. Removes what the node of the source has by then, if a truncate came between."""
    if (early := _early_end(state, context)) is not None:
        return early
    _, region = applied_region(state, context)
    to_root = root_on(region, state.to_node) or state.to_root
    state = with_source(state, region).model_copy(update={"to_root": to_root})
    if region.root == state.root:
        return Goto("switch", state)
    child = (state.rounds, ChildNumber.REMOVE)
    end = await run_child(context, child, REMOVE_COPY.name, removal(state))
    if not has_succeeded(end):
        await rest_before_again(context, state.failed + 1)
        return Goto("remove", state.after_child(has_failed=True))
    left = _table_left(state, context)
    region_left = None if left is None else left[1]
    if region_left is not None and root_on(region_left, state.from_node) not in (None, state.root):
        return Goto("remove", state.after_child(has_failed=False))
    return _over(state, region_left, (end.result or {}).get("stays", []))


def _early_end(state: MoveCopy, context: Context) -> Done[MoveCopy] | None:
    """The end of a move that cannot go on: its table is gone, or the source has to stay. None: it
    goes on."""
    table = _table_left(state, context)
    if table is None:
        return _over(state, None, [])
    info, region = table
    is_removed = root_on(region, state.to_node) is None
    is_needed = is_removed or is_needed_for_good(state, info, region)
    has_source = root_on(region, state.from_node) is not None
    return _over(state, region, []) if has_source and is_needed else None


def _root_there(state: MoveCopy, context: Context) -> str:
    """The root of the copy at the destination. Raises Conflict where another has removed it."""
    _, region = applied_region(state, context)
    root = root_on(region, state.to_node)
    if root is None:
        facts = {"action": "move_copy", "state": f"the copy on {state.to_node} was removed"}
        raise Conflict("action-not-allowed", region_id=state.region_id, **facts)
    return root


def _table_left(state: MoveCopy, context: Context) -> tuple[TableInfo, RegionRoute] | None:
    """The table and the region; None: they are gone, or dropped."""
    try:
        return applied_region(state, context)
    except NotFound:
        return None


def _over(state: MoveCopy, region: RegionRoute | None, stays: object) -> Done[MoveCopy]:
    result = {
        "region_id": state.region_id,
        "from": state.from_node,
        "to": state.to_node,
        "moved": region is not None and root_on(region, state.from_node) is None,
        "leader": None if region is None else region.leader,
        "copies_version": None if region is None else region.copies_version,
        "stays": stays,
    }
    return Done(state, result)


def locks(state: MoveCopy) -> tuple[Lock, ...]:
    """No lock of the route: its children share that for a moment each."""
    return (exclusive(copies_key(state.region_id)),)


def resource(state: MoveCopy) -> Resource:
    return Resource.table(state.table_id, state.name)


MOVE_COPY = Kind(
    name="move_copy",
    state=MoveCopy,
    steps={
        "check": Step(check, to=frozenset({"add", "join"})),
        "add": Step(add, to=frozenset({"add", "join"}), undo=remove_added, waits=True),
        "join": Step(join, to=frozenset({"switch"}), waits=True),
        "switch": Step(
            switch, to=frozenset({"switch", "settle"}), undo=lead_back, ends=True, waits=True
        ),
        "settle": Step(settle, to=frozenset({"remove"}), ends=True, waits=True),
        "remove": Step(remove, to=frozenset({"remove", "switch"}), ends=True, waits=True),
    },
    no_return="settle",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=COPY_DEADLINE_MS,
    lane=AdmissionLane.REPAIR,
)
