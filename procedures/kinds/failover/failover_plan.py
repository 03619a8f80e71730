"""Selection of the regions to move and of their new nodes: a pure function of route and nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from keys.catalog.tables.partition_groups import Groups, counts_of
from keys.model.placing.placements import NodeFilter
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRoute
from metasrv_base.engines import LSM, is_volatile
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.former_leader import (
    FormerLeader,
    former_leader,
    has_not_served,
)
from procedures.kinds.failover.next_leader import led_by
from procedures.ports import NodeView
from procedures.steps.placing import (
    ANY_NODE,
    NodeRules,
    place_in_groups,
    region_root,
    zone_rank,
)


@dataclass(frozen=True, slots=True)
class Rerouted:
    """A region under its new leader."""

    region: RegionRoute
    led_by: str
    """The leader before."""
    leaves: tuple[str, ...]
    """Folders that nobody needs once the region owns what it borrows."""
    is_promoted: bool = False
    """The new leader is a copy of the set: it has every acknowledged row, so nothing is borrowed,
    and no lease is waited for (docs/protocols.md P4.5)."""
    is_leased: bool = False
    """The new leader is an eligible copy: the one before was alone in its set, and served by its
    lease, which is waited for."""
    was_hung: bool = False
    """The leader before lived, was to open the region, and answered no orders."""


@dataclass(frozen=True, slots=True)
class DrainTarget:
    """The regions to move, and the nodes that may take them."""

    source: str
    region_ids: Collection[str]
    targets: Collection[str] = ()
    """Nodes the operator wants; empty: any."""
    moving: Collection[str] = ()
    """Regions that have left the source before: if it is back, it is a node like any other for
    them, and takes them if nobody else can."""
    engine: str = LSM
    """The engine of the regions. Those of a volatile one stay with a leader that lives: a move
    would be the end of their rows."""
    node_filter: NodeFilter = ANY_NODE
    """The filter of the table's placement. It is strict: a region waits rather than leave it
    (docs/decisions/0258)."""
    groups: Groups = field(default_factory=dict)
    """Partition groups of the regions of the table."""
    former: Collection[FormerLeader] = ()
    """Leaders that were replaced by copies which have not served yet."""
    passed_over: Collection[str] = ()
    """Nodes that a region has left because they answered no orders: no other one that hangs is left
    for them, so each is tried once."""
    is_patient: bool = False
    """A node that is known to answer no orders may answer again, and has not been ordered yet."""
    is_forced: bool = False
    """An operator says that the leaders are gone: nothing waits for them."""
    preferred_zones: Sequence[str] = ()
    """Zones of leaders by the table's placement, the best first."""

    @property
    def rules(self) -> NodeRules:
        return NodeRules(self.engine, self.node_filter, self.preferred_zones)


def reroute_plan(
    route: TableRoute | None, nodes: Sequence[NodeView], target: DrainTarget
) -> tuple[Rerouted, ...]:
    """The wanted regions that the source, or a node that is not alive, still leads, and those that
    were to open at one that answers no orders. A restored region whose root nobody has verified
    stays: that root may be an old one.

    Raises Unavailable("node-not-eligible") with the reason of every node if there is no room.
    """
    if route is None:
        return ()
    hung = _hung(route, nodes, () if target.is_patient else target.moving)
    around = _around_hung(route, nodes, target, hung) if hung else ()
    moved = {rerouted.region.region_id for rerouted in around}
    rest = replace(target, region_ids={*target.region_ids} - moved) if moved else target
    try:
        return (*around, *_reroute_plan(route, nodes, rest))
    except Unavailable:
        if not around:
            raise
        return around


def _reroute_plan(
    route: TableRoute, nodes: Sequence[NodeView], target: DrainTarget
) -> tuple[Rerouted, ...]:
    alive = {node.node_id for node in nodes if node.alive}
    complaining = {node.node_id for node in nodes if node.restarted or node.lost}
    leaving = [
        region
        for region in route.region_routes
        if region.region_id in target.region_ids
        and not region.unverified
        and (
            region.leader not in alive
            or (_is_in_doubt(region, complaining) and needs_another(region, nodes, target.former))
            or _is_to_leave(region, target)
        )
    ]
    promoted = [_promoted(region, nodes, target) for region in leaving if has_successors(region)]
    alone = [region for region in leaving if not has_successors(region)]
    if not target.targets:
        again = [region for region in alone if needs_epoch(region, nodes)]
        promoted += map(_led_again, again)
        alone = [region for region in alone if region not in again]
    back = [
        _led_by_former(region, nodes, target) or _led_by_eligible(region, nodes, target)
        for region in alone
    ]
    promoted += back
    alone = [
        region
        for region, rerouted in zip(alone, back, strict=True)
        if rerouted is None and (target.is_forced or not has_not_served(region, target.former))
    ]
    excluded = _excluded(alone, nodes, target)
    groups = [target.groups.get(region.number, {}) for region in alone]
    tablespace = counts_of(target.groups)
    chosen = place_in_groups(nodes, groups, excluded, target.rules, tablespace)
    moved = [_onto(region, node) for region, node in zip(alone, chosen, strict=True)]
    plan = {rerouted.region.region_id: rerouted for rerouted in (*promoted, *moved) if rerouted}
    if leaving and not plan:
        reasons = {
            name: _why_not(region, name, alive) for region in leaving for name in region.in_sync
        }
        raise Unavailable("node-not-eligible", reasons=reasons)
    return tuple(plan[region.region_id] for region in leaving if region.region_id in plan)


def _hung(route: TableRoute, nodes: Sequence[NodeView], moving: Collection[str]) -> frozenset[str]:
    """Ids of those of *moving* that are to open at a node which lives and answers no orders. The
    answers to its heartbeats open no region that was not announced."""
    if not moving:
        return frozenset()
    hung = {node.node_id for node in nodes if node.alive and not node.answers}
    regions = [region for region in route.region_routes if region.region_id in moving]
    opening = [region for region in regions if region.state is RegionState.OPENING]
    return frozenset(region.region_id for region in opening if region.leader in hung)


def _around_hung(
    route: TableRoute, nodes: Sequence[NodeView], target: DrainTarget, hung: Collection[str]
) -> tuple[Rerouted, ...]:
    """The regions *hung* under nodes that answer orders, as if their leaders were dead: none of
    them serves before it is announced. Those that no such node can take stay where they are."""
    away = {node.node_id for node in nodes if not node.answers} | {*target.passed_over}
    able = [replace(node, alive=node.alive and node.node_id not in away) for node in nodes]
    try:
        plan = _reroute_plan(route, able, replace(target, region_ids=hung))
    except Unavailable:
        return ()
    return tuple(replace(rerouted, was_hung=True) for rerouted in plan)


def _why_not(region: RegionRoute, node: str, alive: Collection[str]) -> str:
    """The reason for which a node of the set does not lead the region next."""
    if node not in alive:
        return "not alive"
    return "it is to lead no more" if node == region.leader else "its copy is lost"


def has_successors(region: RegionRoute) -> bool:
    """Whether another copy is in the set: then it is one of them that leads next, or nobody. The
    old leader, cut off, may still answer reads under their promises, and metasrv cannot end these
    by waiting."""
    return len(region.in_sync) > 1


def _is_in_doubt(region: RegionRoute, complaining: Collection[str]) -> bool:
    """Whether `needs_another` has to look at the nodes. *complaining*: those that report regions
    which they do not serve. Of most regions there is nothing to be looked at."""
    return region.state is RegionState.LOST or region.leader in complaining


def needs_epoch(region: RegionRoute, nodes: Sequence[NodeView]) -> bool:
    """Whether its leader lives, and opens the region at no epoch up to this one: its process has
    started again since it led (docs/protocols.md P3.5)."""
    leader = next((node for node in nodes if node.node_id == region.leader), None)
    return leader is not None and leader.has_restarted(region.region_id, region.epoch)


def needs_another(
    region: RegionRoute, nodes: Sequence[NodeView], former: Collection[FormerLeader] = ()
) -> bool:
    """Whether its leader lives and does not serve the region at this epoch: its process has started
    again, or, by the route or its own report, its files are lost while another copy of the set, or
    the leader before it, has every acknowledged row."""
    if needs_epoch(region, nodes):
        return True
    if not (region.state is RegionState.LOST or _has_lost(region, nodes)):
        return False
    others = living_members(region, nodes) or living_eligible(region, nodes)
    return bool(others or former_leader(region, former, nodes))


def _has_lost(region: RegionRoute, nodes: Sequence[NodeView]) -> bool:
    """Whether its leader lives, and reports the region as lost at this epoch."""
    leader = next((node for node in nodes if node.node_id == region.leader), None)
    return leader is not None and leader.has_lost(region.region_id, region.epoch)


def living_members(region: RegionRoute, nodes: Sequence[NodeView]) -> list[RegionCopy]:
    """The copies of the set, but the leader's, on nodes that are alive and do not report them as
    lost."""
    able = _able(region, nodes)
    return [copy for copy in region.copies if copy.role is CopyRole.IN_SYNC and copy.node in able]


def living_eligible(region: RegionRoute, nodes: Sequence[NodeView]) -> list[RegionCopy]:
    """The same of the eligible copies of a region whose leader is alone in its set. Beside another
    copy of the set none is promoted: the leader may serve under the promise of that one, and
    waiting for its lease would not end this (docs/protocols.md P5.12)."""
    if has_successors(region):
        return []
    able = _able(region, nodes)
    return [copy for copy in region.eligible if copy.node in able]


def _able(region: RegionRoute, nodes: Sequence[NodeView]) -> set[str]:
    return {node.node_id for node in nodes if node.alive and region.region_id not in node.lost}


def _promoted(
    region: RegionRoute, nodes: Sequence[NodeView], target: DrainTarget
) -> Rerouted | None:
    """The region under the copy of its set that leads next; None: no node of them is alive and has
    its files, and the region stays. Wanted targets go first, then nodes that answer orders, then
    nodes that are not cordoned, then those in the best of the preferred zones, then those where
    most of the region's partition group is led, then the least loaded.

    The former leader stays as a learner with its root: it cuts back to what the new leader has. If
    it lives, and needs a new epoch, it leads again where no other node of the set is alive.
    """
    candidates = living_members(region, nodes)
    if not candidates:
        may_lead_again = needs_epoch(region, nodes) and not region.borrows
        return _led_again(region) if may_lead_again else None
    chosen = _best(region.number, candidates, nodes, target)
    moved = led_by(region, chosen, former=CopyRole.LEARNER)
    return Rerouted(moved, led_by=region.leader, leaves=region.borrows, is_promoted=True)


def _best(
    number: int,
    candidates: Sequence[RegionCopy],
    nodes: Sequence[NodeView],
    target: DrainTarget,
) -> RegionCopy:
    """The one of *candidates* that leads next. *number*: of the region."""
    views = {node.node_id: node for node in nodes}
    group = target.groups.get(number, {})

    def rank(copy: RegionCopy) -> tuple[bool, bool, bool, int, int, int, str]:
        view, is_unwanted = views[copy.node], copy.node not in target.targets
        in_zone = zone_rank(view.zone, target.preferred_zones)
        return (
            is_unwanted,
            not view.answers,
            view.cordoned,
            in_zone,
            -group.get(copy.node, 0),
            view.regions,
            copy.node,
        )

    return min(candidates, key=rank)


def _led_by_eligible(
    region: RegionRoute, nodes: Sequence[NodeView], target: DrainTarget
) -> Rerouted | None:
    """The region under an eligible copy, if its leader is dead or lost. None: the leader is to
    leave and lives, or nobody is eligible who does."""
    alive = {node.node_id for node in nodes if node.alive}
    if region.leader in alive and not needs_another(region, nodes):
        return None
    candidates = living_eligible(region, nodes)
    if not candidates:
        return None
    chosen = _best(region.number, candidates, nodes, target)
    moved = led_by(region, chosen, former=CopyRole.LEARNER)
    return Rerouted(
        moved, led_by=region.leader, leaves=region.borrows, is_promoted=True, is_leased=True
    )


def _led_by_former(
    region: RegionRoute, nodes: Sequence[NodeView], target: DrainTarget
) -> Rerouted | None:
    """The region under the leader that the present one, which is alone in its set and has never
    served, has replaced. None: it is not there, or may have become another."""
    copy = former_leader(region, target.former, nodes)
    if copy is None:
        return None
    moved = led_by(region, copy, former=CopyRole.LEARNER)
    return Rerouted(moved, led_by=region.leader, leaves=region.borrows, is_promoted=True)


def _led_again(region: RegionRoute) -> Rerouted:
    """The region under the same leader, in the same root and with the same set, at the next epoch:
    that leader has every acknowledged row, and the process that led before has ended, so no lease
    is waited for. What it borrows is still to be moved."""
    state = RegionState.OPENING
    moved = region.with_copies(region.copies, epoch=region.epoch + 1, state=state)
    return Rerouted(moved, led_by=region.leader, leaves=(), is_promoted=not region.borrows)


def _is_to_leave(region: RegionRoute, target: DrainTarget) -> bool:
    if is_volatile(target.engine):
        return False
    return region.leader == target.source and region.region_id not in target.moving


def _excluded(
    leaving: Sequence[RegionRoute], nodes: Sequence[NodeView], target: DrainTarget
) -> set[str]:
    all_nodes = {node.node_id for node in nodes}
    unwanted = all_nodes - set(target.targets) if target.targets else set[str]()
    elsewhere = unwanted | {target.source}
    may_return = all(region.region_id in target.moving for region in leaving)
    is_alone = all(target.rules.why_not(node, elsewhere) for node in nodes)
    return unwanted if may_return and is_alone else elsewhere


def _onto(region: RegionRoute, node: NodeView) -> Rerouted:
    """Borrows the old root, and what that one was borrowing.

    The opener of a root that was never announced may have raised fences already, in every root that
    it borrowed: the route keeps that root, and says that nothing was acknowledged there. A learner
    on the new leader's node is left: no node has two copies of a region.
    """
    epoch = region.epoch + 1
    own = [copy.root for copy in region.copies if copy.node == node.node_id]
    copies = tuple(copy for copy in region.copies if copy.node != node.node_id)
    unannounced = region.unannounced if region.announced else (*region.unannounced, region.root)
    moved = region.with_copies(
        copies,
        leader=node.node_id,
        epoch=epoch,
        state=RegionState.OPENING,
        root=region_root(node, region.region_id, epoch),
        announced=False,
        borrows=(*region.borrows, region.root),
        unannounced=unannounced,
    )
    return Rerouted(moved, led_by=region.leader, leaves=(region.root, *own))
