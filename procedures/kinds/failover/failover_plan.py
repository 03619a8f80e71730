"""Selection of the regions to move and of their new nodes: a pure function of route and nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from keys.catalog.tables.partition_groups import Groups
from keys.model.placing.placements import NodeFilter
from keys.model.tables import RegionRoute, RegionState, TableRoute
from metasrv_base.engines import LSM, is_volatile
from procedures.ports import NodeView
from procedures.steps.placing import ANY_NODE, place_in_groups, region_root, why_not


@dataclass(frozen=True, slots=True)
class Rerouted:
    """A region under its new leader."""

    region: RegionRoute
    led_by: str
    """The leader before."""
    leaves: tuple[str, ...]
    """Folders that nobody needs once the region owns what it borrows."""


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


def reroute_plan(
    route: TableRoute | None, nodes: Sequence[NodeView], target: DrainTarget
) -> tuple[Rerouted, ...]:
    """The wanted regions that the source, or a node that is not alive, still leads. A restored
    region whose root nobody has verified stays: that root may be an old one.

    Raises Unavailable("node-not-eligible") with the reason of every node if there is no room.
    """
    if route is None:
        return ()
    alive = {node.node_id for node in nodes if node.alive}
    leaving = [
        region
        for region in route.region_routes
        if region.region_id in target.region_ids
        and not region.unverified
        and (region.leader not in alive or _is_to_leave(region, target))
    ]
    excluded = _excluded(leaving, nodes, target)
    groups = [target.groups.get(region.number, {}) for region in leaving]
    chosen = place_in_groups(nodes, groups, excluded, target.engine, target.node_filter)
    return tuple(_onto(region, node) for region, node in zip(leaving, chosen, strict=True))


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
    is_alone = all(why_not(node, elsewhere, target.engine, target.node_filter) for node in nodes)
    return unwanted if may_return and is_alone else elsewhere


def _onto(region: RegionRoute, node: NodeView) -> Rerouted:
    """Borrows the old root, and what that one was borrowing.

    The opener of a root that was never announced may have raised fences already, in every root that
    it borrowed: the route keeps that root, and says that nothing was acknowledged there.
    """
    epoch = region.epoch + 1
    unannounced = region.unannounced if region.announced else (*region.unannounced, region.root)
    moved = region.model_copy(
        update={
            "leader": node.node_id,
            "epoch": epoch,
            "state": RegionState.OPENING,
            "root": region_root(node, region.region_id, epoch),
            "announced": False,
            "borrows": (*region.borrows, region.root),
            "unannounced": unannounced,
        }
    )
    return Rerouted(moved, led_by=region.leader, leaves=(region.root,))
