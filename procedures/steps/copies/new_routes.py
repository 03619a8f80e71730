"""Routes of regions that begin empty: on which nodes, and on which others where a node has died
before they were made, or answers no orders. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from keys.catalog.catalog import Catalog
from keys.catalog.tables.partition_groups import counts_of
from keys.model.tables import COPIES_FORMAT, RegionRoute, RegionState, TableInfo, TableRoute
from metasrv_base.ids import TableId, region_id
from procedures.ports import NodeView
from procedures.quorum import majority
from procedures.steps.copies.copy_placing import CopyRules, Homes, new_copies, place_copies
from procedures.steps.placing import (
    NOWHERE,
    NodeRules,
    place_in_groups,
    region_root,
    zone_rank,
)

FIRST_EPOCH = 1


def place_regions(
    info: TableInfo, numbers: Iterable[int], catalog: Catalog, nodes: Sequence[NodeView]
) -> tuple[Homes, ...]:
    """The nodes of each of the regions *numbers*. Raises Unavailable("node-not-eligible") with
    every node's reason."""
    numbers = tuple(numbers)
    rules = NodeRules.of(catalog.placing.placement_of(info), info.engine)
    groups = catalog.partition_groups(info)
    led = [groups.get(number, NOWHERE) for number in numbers]
    leaders = place_in_groups(nodes, led, (), rules, counts_of(groups))
    if info.replicas == 1:
        return tuple([(leader,) for leader in leaders])
    beside = catalog.copy_groups(info)
    own = {position: beside.get(number, NOWHERE) for position, number in enumerate(numbers)}
    return place_copies(nodes, leaders, CopyRules(info.replicas, rules, own, counts_of(beside)))


def table_route(table_id: int, homes: tuple[Homes, ...]) -> TableRoute:
    """One region for each of *homes*. The create opens them, so the route is born announced."""
    regions = tuple([_new_region(table_id, number, nodes) for number, nodes in enumerate(homes)])
    route = TableRoute(table_id=table_id, version=1, region_routes=regions)
    has_copies = len(homes[0]) > 1
    return route.model_copy(update={"format": COPIES_FORMAT}) if has_copies else route


def hindered(route: TableRoute, able: Collection[str]) -> tuple[RegionRoute, ...]:
    """The new regions that cannot be made where they are placed: the leader's node is not *able* to
    make it, or so many are not that the others are no majority (docs/protocols.md P5.8)."""

    def can_be_made(region: RegionRoute) -> bool:
        count = sum(node in able for node in region.nodes)
        return region.leader in able and count >= majority(len(region.nodes))

    return tuple(region for region in route.region_routes if not can_be_made(region))


def elsewhere(
    info: TableInfo, route: TableRoute, catalog: Catalog, nodes: Sequence[NodeView]
) -> TableRoute:
    """The route of a new table of which regions are `hindered`, by nodes that are dead or answer no
    orders: these begin at the next epoch, in new roots, led by one of the copies on other nodes
    where those are a majority; else on nodes that are chosen anew. Raises as `place_regions`."""
    zones = catalog.placing.placement_of(info).preferred_zones
    views = {node.node_id: replace(node, alive=node.takes_orders) for node in nodes}
    able = {node.node_id for node in nodes if node.takes_orders}
    left = {region.region_id for region in hindered(route, able)}
    homes = dict[str, Homes]()
    rest = list[RegionRoute]()
    for region in route.region_routes:
        own = _own_homes(region, views, zones) if region.region_id in left else None
        if own is not None:
            homes[region.region_id] = own
        elif region.region_id in left:
            rest.append(region)
        else:
            _count(region, views)
    if rest:
        numbers = [region.number for region in rest]
        anew = place_regions(info, numbers, catalog, tuple(views.values()))
        homes.update(zip([region.region_id for region in rest], anew, strict=True))
    regions = [
        _moved(region, homes[region.region_id]) if region.region_id in homes else region
        for region in route.region_routes
    ]
    return route.model_copy(update={"region_routes": tuple(regions)})


def _count(region: RegionRoute, views: dict[str, NodeView]) -> None:
    """Notes that the nodes have the region: they do not say so before the table is there."""
    for node in views.keys() & region.nodes:
        views[node] = replace(views[node], regions=views[node].regions + 1)


def _new_region(table_id: int, number: int, nodes: Homes) -> RegionRoute:
    name = str(region_id(TableId(table_id), number))
    leader, *others = nodes
    region = RegionRoute(
        region_id=name,
        leader=leader.node_id,
        epoch=FIRST_EPOCH,
        state=RegionState.OPEN,
        root=region_root(leader, name, FIRST_EPOCH),
        announced=True,
    )
    return region.with_copies(new_copies(name, FIRST_EPOCH, others)) if others else region


def _own_homes(
    region: RegionRoute, views: Mapping[str, NodeView], preferred_zones: Sequence[str]
) -> Homes | None:
    """The nodes of the region, those that live first, in the best of the preferred zones. None:
    they are no majority, or one was removed."""
    homes = [views[node] for node in region.nodes if node in views]
    living = sum(home.alive for home in homes)
    if len(homes) < len(region.nodes) or living < majority(len(homes)):
        return None

    def rank(home: NodeView) -> tuple[bool, bool, int]:
        return not home.alive, home.cordoned, zone_rank(home.zone, preferred_zones)

    return tuple(sorted(homes, key=rank))


def _moved(region: RegionRoute, homes: Homes) -> RegionRoute:
    leader, *others = homes
    epoch = region.epoch + 1
    return region.with_copies(
        new_copies(region.region_id, epoch, others),
        leader=leader.node_id,
        epoch=epoch,
        root=region_root(leader, region.region_id, epoch),
    )
