"""switch_leader: has another copy of the set lead a region, while rows are written.

The leader makes writes wait once the next one is ready, until that one has its whole log; then one
route transaction names it, at the next epoch (docs/protocols.md P5.13). The former leader stays in
the set, since it has every row that was acknowledged: so the new one needs nobody else, and serves
as soon as the former one follows it.

No lock of the region is held: a failover, or another switch, may come between, and the compare of
the route decides. Until the transaction the leader leads on, whatever happens: writes that wait go
on by an order, or after HOLD_MS.
"""

from collections.abc import Sequence
from functools import partial
from operator import is_

from pydantic import Field

from keys.commit.change import change, route_changed
from keys.commit.txn import Snapshot
from keys.model.records import Lock, Resource
from keys.model.tables import (
    CopyRole,
    RegionRoute,
    RegionState,
    TableInfo,
    TableInfoKey,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.errors import Conflict, NotFound, Unavailable
from procedures.context import Context
from procedures.kinds.failover.failover_plan import (
    DrainTarget,
    has_successors,
    living_members,
    needs_epoch,
    reroute_plan,
)
from procedures.kinds.failover.next_leader import LeaderChoice, led_by, must_be_in_set, next_leader
from procedures.locking.locks import route_key, shared
from procedures.machine import AdmissionLane, Back, Done, Goto, Kind, Outcome, ProcedureState, Step
from procedures.ports import NodeView
from procedures.steps.copies.copy_orders import (
    CopyTarget,
    answered,
    hold_writes,
    in_any_case,
    living,
    open_copy,
    order_copies,
    prepare_copy,
    resume_writes,
    targets_of,
)
from procedures.steps.copies.copy_routes import must_have_region
from procedures.steps.region_orders import order_one

DEADLINE_MS = 15_000
"""The time for which a copy is tried that does not get ready. A hold that fails is short."""


class SwitchLeader(ProcedureState):
    table_id: int
    name: str
    region_id: str
    reason: str
    epoch: int
    """The epoch of the leader that is to be replaced."""
    to_node: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The node that is to lead; None: the copy of the set that suits best."""
    spared: str | None = Field(default=None, exclude_if=partial(is_, None))
    """A node that is to lead nothing: it is drained."""
    node: str | None = Field(default=None, exclude_if=partial(is_, None))
    root: str | None = Field(default=None, exclude_if=partial(is_, None))
    """The copy that leads next; None: not chosen yet."""


async def choose(state: SwitchLeader, context: Context) -> Outcome[SwitchLeader]:
    """Chooses the copy that leads next. Ends where the wanted node leads already.

    Raises NotFound for a table or region that is gone; Conflict: `stale-epoch` where another leads
    than was known, `node-not-eligible` with the reason of each copy, `action-not-allowed`.
    """
    info, region = await _region(state, context)
    if state.to_node is not None and region.leader == state.to_node:
        return Done(state, _result(region, is_switched=False))
    _must_be_led(region, state)
    _must_be_movable(info, region)
    catalog, nodes = context.ports.applied(), context.ports.placement.nodes()
    groups = catalog.partition_groups(info).get(region.number, {})
    zones = catalog.placing.placement_of(info).preferred_zones
    choice = LeaderChoice(state.to_node, state.spared, zones)
    copy = next_leader(region, nodes, choice, groups)
    return Goto("prepare", state.model_copy(update={"node": copy.node, "root": copy.root}))


async def prepare(state: SwitchLeader, context: Context) -> Outcome[SwitchLeader]:
    """Has the copies of the set write to files what they have in memory, so that the next leader
    has little to read while writes wait.

    Raises Unavailable unless the node that leads next has done it: it may have died a moment ago.
    Where others do not, the switch takes longer.
    """
    info, region = await _region(state, context)
    _must_be_led(region, state)
    target = _target(state, info, region)
    in_set = [each for each in targets_of(info, [region]) if each.node in region.in_sync]
    here = living(in_set, context.answering_nodes() | {target.node})
    answers = await order_copies(context, here, prepare_copy, answered(target))
    if target.name not in answers.results or target.name in answers.failed():
        facts = {"copies": answers.failed(), "nodes": sorted(answers.silent)}
        raise Unavailable("not-ready", what=f"the copy on {target.node}", **facts)
    return Goto("switch", state)


async def switch(state: SwitchLeader, context: Context) -> Outcome[SwitchLeader]:
    """Has the leader hold writes until the next one has its log, and names that one in the route.

    Raises Conflict where the copy has left the set, or the leader has changed, is dead or answers
    no orders; Unavailable where the copy lacks records: then writes go on.
    """
    info, region = await _region(state, context)
    _must_be_led(region, state)
    target = _target(state, info, region)
    must_be_in_set(region, target.node, target.root)
    _must_answer(region, context)
    await order_one(context, region.leader, hold_writes(target))
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    current = must_have_region(snapshot.must(key), state.region_id)
    _must_be_led(current, state)
    copy = must_be_in_set(current, target.node, target.root)
    # The former leader lives, and has every row that was acknowledged (docs/protocols.md P5.13).
    changed = led_by(current, copy, former=CopyRole.IN_SYNC)
    txn = change(snapshot.only(key), route_changed(snapshot.must(key), (changed,)))
    return Goto("open", state, txn)


async def resume(state: SwitchLeader, context: Context) -> Back | None:
    """Writes that wait at the leader go on at once. Where it cannot be reached, they do by
    themselves."""
    if state.node is None:
        return None
    try:
        info, region = await _region(state, context)
    except NotFound:
        return None
    if region.epoch == state.epoch:
        target = CopyTarget(info, region, region.leader, region.root)
        here = living([target], context.answering_nodes())
        await order_copies(context, here, resume_writes, in_any_case)
    return None


async def open_region(state: SwitchLeader, context: Context) -> Outcome[SwitchLeader]:
    """Orders the new leader to open and the others to follow it, all at once, and says in the route
    that it is open. Names another copy where the node of the new leader has died, answers no
    orders, has started again since it opened, or has lost its disk, and ends where a failover has
    done so.

    Raises Unavailable until the leader has opened.
    """
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.must(info_key), snapshot.must(key)
    region = must_have_region(route, state.region_id)
    if region.epoch != state.epoch + 1:
        return Done(state, _result(region, is_switched=False))
    alive, nodes = context.alive_nodes(), context.ports.placement.nodes()
    if region.leader not in alive or needs_epoch(region, nodes) or _is_hung(region, nodes):
        reports = [node.lost for node in nodes if node.node_id == region.leader]
        is_lost = any(region.region_id in lost for lost in reports)
        return _elsewhere(state, context, snapshot, route, is_lost=is_lost)
    able = context.answering_nodes() | {region.leader}
    targets = living(targets_of(info, [region]), able)
    answers = await order_copies(context, targets, open_copy, answered(targets[0]))
    is_lost = answers.failed().get(region.region_id) == "region-lost"
    if is_lost and living_members(region, nodes):
        return _elsewhere(state, context, snapshot, route, is_lost=True)
    if region.region_id not in answers.results or region.region_id in answers.failed():
        facts = {"regions": answers.failed(), "nodes": sorted(answers.silent)}
        raise Unavailable("not-ready", what=f"the leader {region.leader}", **facts)
    if region.state is RegionState.OPEN:
        return Done(state, _result(region, is_switched=True))
    opened = region.model_copy(update={"state": RegionState.OPEN})
    txn = change(snapshot, route_changed(route, (opened,)))
    return Done(state, _result(opened, is_switched=True), txn)


def _is_hung(region: RegionRoute, nodes: Sequence[NodeView]) -> bool:
    """Whether the node that is to lead next answers no orders, and one of another copy of the set
    does. The region serves nobody before it is open."""
    able = {node.node_id for node in nodes if node.takes_orders}
    others = {copy.node for copy in living_members(region, nodes)}
    return region.state is RegionState.OPENING and region.leader not in able and bool(others & able)


def _elsewhere(
    state: SwitchLeader, context: Context, snapshot: Snapshot, route: TableRoute, *, is_lost: bool
) -> Outcome[SwitchLeader]:
    """A copy of the set leads next, as in a failover, or the same one that has started again.
    *is_lost*: the copy that was to lead has lost its files. Raises Unavailable where none lives:
    also for a leader that is dead and alone in its set, whose root a failover has to borrow, and
    whose rows it has to move."""
    region = must_have_region(route, state.region_id)
    nodes = context.ports.placement.nodes()
    if not (has_successors(region) or needs_epoch(region, nodes)):
        raise Unavailable("not-ready", what=f"the leader {region.leader}", reason="it is alone")
    info = snapshot.must(TableInfoKey(state.table_id))
    zones = context.ports.applied().placing.placement_of(info).preferred_zones
    target = DrainTarget(region.leader, (region.region_id,), preferred_zones=zones)
    (rerouted,) = reroute_plan(route, nodes, target)
    changed = rerouted.region if is_lost else _with_both(region, rerouted.region)
    new = state.model_copy(update={"epoch": region.epoch, "node": changed.leader})
    txn = change(snapshot.only(TableRouteKey(state.table_id)), route_changed(route, (changed,)))
    return Goto("open", new, txn)


def _with_both(before: RegionRoute, after: RegionRoute) -> RegionRoute:
    """*after*, in whose set the leader of *before* stays rather than that the next one is alone: it
    has every acknowledged row, and nothing but the route tells a later failover."""
    if len(after.in_sync) > 1 or after.root == before.root:
        return after
    copy = must_be_in_set(before, after.leader, after.root)
    return led_by(before, copy, former=CopyRole.IN_SYNC)


async def _region(state: SwitchLeader, context: Context) -> tuple[TableInfo, RegionRoute]:
    """Raises NotFound."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None:
        raise NotFound("table-not-found", table_id=state.table_id)
    return info, must_have_region(route, state.region_id)


def _must_be_led(region: RegionRoute, state: SwitchLeader) -> None:
    if region.epoch != state.epoch:
        facts = {"epoch": state.epoch, "current_epoch": region.epoch}
        raise Conflict("stale-epoch", region_id=region.region_id, **facts)


def _must_answer(region: RegionRoute, context: Context) -> None:
    """A leader that hangs cannot hold writes; a failover chooses the one after a dead leader."""
    if region.leader not in context.answering_nodes():
        is_alive = region.leader in context.alive_nodes()
        reasons = {region.leader: "it answers no orders" if is_alive else "not alive"}
        raise Conflict("node-not-eligible", region_id=region.region_id, reasons=reasons)


def _must_be_movable(info: TableInfo, region: RegionRoute) -> None:
    facts = {"region_id": region.region_id, "action": "switch_leader"}
    if info.is_volatile or region.unverified or region.borrows:
        state = "rows in one process" if info.is_volatile else "not verified"
        state = "it borrows the root of a former leader" if region.borrows else state
        raise Conflict("action-not-allowed", state=state, **facts)
    if region.state is not RegionState.OPEN:
        raise Unavailable("not-ready", what=f"region {region.region_id}")


def _target(state: SwitchLeader, info: TableInfo, region: RegionRoute) -> CopyTarget:
    assert state.node is not None
    assert state.root is not None
    return CopyTarget(info, region, state.node, state.root)


def _result(region: RegionRoute, *, is_switched: bool) -> dict[str, object]:
    facts = {"leader": region.leader, "epoch": region.epoch, "switched": is_switched}
    return {"region_id": region.region_id, **facts}


def locks(state: SwitchLeader) -> tuple[Lock, ...]:
    return (shared(route_key(state.table_id)),)


def resource(state: SwitchLeader) -> Resource:
    return Resource.table(state.table_id, state.name)


SWITCH_LEADER = Kind(
    name="switch_leader",
    state=SwitchLeader,
    steps={
        "choose": Step(choose, to=frozenset({"prepare"}), ends=True),
        "prepare": Step(prepare, to=frozenset({"switch"})),
        "switch": Step(switch, to=frozenset({"open"}), undo=resume),
        "open": Step(open_region, to=frozenset({"open"}), ends=True),
    },
    no_return="switch",
    locks=locks,
    resource=resource,
    success=200,
    deadline_ms=DEADLINE_MS,
    lane=AdmissionLane.REPAIR,
)
