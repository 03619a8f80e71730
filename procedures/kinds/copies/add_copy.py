"""add_copy: adds a copy to a region, on a node that was chosen for it.

The route names the copy as a learner, in a root that no copy had before; then its node makes it,
and an order tells the leader, which sends it all records. The copy joins the set when the leader
asks for that (change_copies, docs/protocols.md P5.10): this procedure does not wait for rows, so no
lock is held meanwhile.

A copy that may lead if the leader is lost (P5.12) is not replaced, unless it was given up: then its
folder stays on its disk.

An undo removes the learner from the route first, and then deletes its folder. A copy that has
joined by then stays, since the leader requires it.
"""

from dataclasses import replace
from operator import not_

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.model.records import Lock, Resource
from keys.model.tables import (
    CopyRole,
    RegionCopy,
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableRouteKey,
)
from metasrv_base.errors import Conflict, NotFound, Unavailable
from metasrv_base.wire.node.copies import COPIES_MAX
from procedures.context import Context
from procedures.locking.locks import route_key, shared
from procedures.machine import AdmissionLane, Back, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.steps.copies.copy_destination import root_at
from procedures.steps.copies.copy_leavings import delete_left
from procedures.steps.copies.copy_orders import (
    CopyTarget,
    create_copy,
    order_copies,
    tell_leader,
)
from procedures.steps.copies.copy_routes import (
    copy_root,
    must_have_region,
    must_not_be_eligible,
    without_copy,
)


class AddCopy(ProcedureState):
    table_id: int
    name: str
    region_id: str
    node: str
    """The node that gets the copy."""
    reason: str
    replaces: str | None = None
    """Root of the learner on that node in whose place the copy comes: it was never made, or its
    disk is gone. None: the node has no copy."""
    gives_up: bool = Field(default=False, exclude_if=not_)
    """The replaced learner counts as lost, also if it may lead by the route: its node has not had
    it for `safe_lost_time_ms`. Its folder is not deleted by this procedure."""
    root: str | None = None
    """Root of the copy; None: not placed yet."""

    @property
    def discards(self) -> str | None:
        """The root in whose place the copy comes, if its folder is to be deleted."""
        return None if self.gives_up else self.replaces


async def place(state: AddCopy, context: Context) -> Outcome[AddCopy]:
    """Names the learner in the route.

    Raises NotFound for a table or region that is gone; Conflict: `node-not-eligible`,
    `replica-limit` before anything is made, `version-mismatch` where the node has another copy than
    was known, `action-not-allowed` where that copy may lead. Raises Unavailable while the region is
    not open.
    """
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        raise NotFound("table-not-found", table_id=state.table_id)
    region = must_have_region(route, state.region_id)
    kept = _without_replaced(region, state)
    must_take_one_more(info, region, kept)
    version = region.copies_version + 1
    root = copy_root(root_at(state.node, info, context), region, version)
    learner = RegionCopy(node=state.node, root=root, role=CopyRole.LEARNER)
    changed = region.with_copies((*kept, learner))
    txn = change(snapshot.only(key), route_changed(route, (changed,)))
    return Goto("make", state.model_copy(update={"root": root}), txn)


def _without_replaced(region: RegionRoute, state: AddCopy) -> tuple[RegionCopy, ...]:
    """The copies that stay. Raises Conflict("version-mismatch"), or ("action-not-allowed") for a
    replaced copy that may lead and was not given up."""
    here = [region.root] if region.leader == state.node else []
    here += [copy.root for copy in region.copies if copy.node == state.node]
    expected = [] if state.replaces is None else [state.replaces]
    replaced = [copy for copy in region.copies if copy.root == state.replaces]
    if here != expected or any(copy.role is CopyRole.IN_SYNC for copy in replaced):
        facts = {"expected": expected, "found": here}
        raise Conflict("version-mismatch", region_id=region.region_id, **facts)
    if state.replaces is not None and not state.gives_up:
        must_not_be_eligible(region, state.replaces, "add_copy")
    return tuple(copy for copy in region.copies if copy not in replaced)


def must_take_one_more(info: TableInfo, region: RegionRoute, kept: tuple[RegionCopy, ...]) -> None:
    """One copy more than the table is to have is allowed: one is added before another goes. A copy
    in the place of another makes no more of them, also where a number that was lowered has left
    several too many.

    *kept*: the copies beside the leader that stay. Raises Conflict("replica-limit"), or
    ("action-not-allowed") for a region that takes no copies; Unavailable while it is not open."""
    limit = min(info.replicas + 1, COPIES_MAX)
    if len(kept) == len(region.copies) and len(kept) + 2 > limit:
        raise Conflict("replica-limit", region_id=region.region_id, limit=limit)
    if info.is_volatile or region.unverified:
        state = "the rows of a region are in one process" if info.is_volatile else "not verified"
        raise Conflict("action-not-allowed", action="add_copy", state=state)
    if region.state is not RegionState.OPEN:
        raise Unavailable("not-ready", what=f"region {region.region_id}")


async def make(state: AddCopy, context: Context) -> Outcome[AddCopy]:
    """Orders the node to make the copy, and tells the leader. If the route no longer names the
    copy, its folder is deleted."""
    target = await _target(state, context)
    if target is None or not _is_named(target):
        stays = await _discard(target, state.root, context)
        return Done(state, {"region_id": state.region_id, "added": False, "stays": stays})
    if state.node not in context.alive_nodes():
        raise Unavailable("node-not-eligible", reasons={state.node: "not alive"})
    answers = await order_copies(context, [target], create_copy)
    answers.must_all_succeed()
    region = target.region
    await tell_leader(context, target.info, region)
    stays = await _discard(target, state.discards, context)
    stays += [state.replaces] if state.gives_up and state.replaces else []
    facts = {"node": state.node, "root": state.root, "copies_version": region.copies_version}
    return Done(state, {"region_id": state.region_id, "added": True, **facts, "stays": stays})


async def _target(state: AddCopy, context: Context) -> CopyTarget | None:
    """The copy, and its region as the route has it; None: the table is gone, and its folders are
    those of a dropped one."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        return None
    assert state.root is not None
    region = must_have_region(route, state.region_id)
    return CopyTarget(info, region, state.node, state.root)


def _is_named(target: CopyTarget) -> bool:
    return target.root in target.region.roots


async def _discard(target: CopyTarget | None, root: str | None, context: Context) -> list[str]:
    """Deletes a folder that the route names no more, and returns it if it stays."""
    if target is None or root is None:
        return []
    return await delete_left(context, replace(target, root=root))


async def remove_learner(state: AddCopy, context: Context) -> Back | None:
    """First the route names it no more, then its folder goes."""
    if state.root is None:
        return None
    key = TableRouteKey(state.table_id)
    snapshot = await context.snapshot(key)
    route = snapshot.get(key)
    if route is not None:
        region = must_have_region(route, state.region_id)
        roles = [copy.role for copy in region.copies if copy.root == state.root]
        if roles == [CopyRole.LEARNER]:
            changed = without_copy(region, state.root)
            return Back(change(snapshot, route_changed(route, (changed,))))
        if roles or region.root == state.root:
            return None  # it has joined, and may lead
    target = await _target(state, context)
    for root in (state.root, state.discards):
        await _discard(target, root, context)
    return None


def locks(state: AddCopy) -> tuple[Lock, ...]:
    return (shared(route_key(state.table_id)),)


def resource(state: AddCopy) -> Resource:
    return Resource.table(state.table_id, state.name)


ADD_COPY = Kind(
    name="add_copy",
    state=AddCopy,
    steps={
        "place": Step(place, to=frozenset({"make"}), undo=remove_learner),
        "make": Step(make),
    },
    no_return="make",
    locks=locks,
    resource=resource,
    success=200,
    lane=AdmissionLane.REPAIR,
)
