"""Which regions leave, and where they go: a pure function of route and nodes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from keys.tables import RegionRoute, RegionState, TableRoute
from procedures.placing import place, region_root
from procedures.ports import NodeView


@dataclass(frozen=True, slots=True)
class Rerouted:
    """One region under its new leader."""

    region: RegionRoute
    led_by: str
    """Its leader so far."""
    leaves: tuple[str, ...]
    """Folders that nobody needs once the region owns what it borrows."""


def reroute_plan(
    route: TableRoute | None,
    nodes: Sequence[NodeView],
    source: str,
    region_ids: Collection[str],
    targets: Collection[str],
) -> tuple[Rerouted, ...]:
    """The regions among *region_ids* that *source*, or a node that is not alive, still leads.

    Raises Unavailable("node-not-eligible") with the reason of every node if there is no room.
    """
    if route is None:
        return ()
    alive = {node.node_id for node in nodes if node.alive}
    leaving = [
        region
        for region in route.region_routes
        if region.region_id in region_ids
        and (region.leader == source or region.leader not in alive)
    ]
    excluded = {source} | ({node.node_id for node in nodes} - set(targets) if targets else set())
    chosen = place(nodes, len(leaving), excluded) if leaving else ()
    return tuple(_onto(region, node) for region, node in zip(leaving, chosen, strict=True))


def _onto(region: RegionRoute, node: NodeView) -> Rerouted:
    """Borrows the old root, and what that one was borrowing.

    A root that was never announced holds nothing that was acknowledged: it is left, not borrowed.
    """
    epoch = region.epoch + 1
    borrows = (*region.borrows, region.root) if region.announced else region.borrows
    moved = region.model_copy(
        update={
            "leader": node.node_id,
            "epoch": epoch,
            "state": RegionState.OPENING,
            "root": region_root(node, region.region_id, epoch),
            "announced": False,
            "borrows": borrows,
        }
    )
    return Rerouted(moved, led_by=region.leader, leaves=(region.root,))
