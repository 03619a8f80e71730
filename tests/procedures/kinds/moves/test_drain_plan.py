"""The moves of a drain that may begin now: bounds, partition groups, and regions that wait."""

from collections.abc import Mapping
from dataclasses import replace

from keys.catalog.catalog import Catalog
from keys.model.log import PlacementCreated, TableCreated, TableDropped, TablespaceCreated
from keys.model.placing.placements import default_placement
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import CopyRole, RegionCopy, RegionState, TableInfo, TableRoute
from metasrv_base.concurrency.turns import at_once
from metasrv_base.engines import MEMORY
from procedures.kinds.moves.arrivals import ARRIVALS_MAX, DrainRules
from procedures.kinds.moves.drain_plan import dropped_moves_due, left, moves_due
from procedures.kinds.moves.leaving_copies import leaving_groups
from procedures.ports import NodeView
from tests.metasrv.leadership.copies.copied_regions import view
from tests.metasrv.nodes.catalogs import catalog_of
from tests.procedures.harness.tables import region_ids, table_info, table_route

SPACE = TablespaceInfo(tablespace_id=1_000, catalog="main", name="space", created_at_ms=0)
OTHERS = (view("dn-2", regions=5), view("dn-3"))
Begun = Mapping[str, str]
NOTHING_BEGUN: Begun = {}


def holding(*tables: tuple[TableInfo, TableRoute]) -> Catalog:
    made = (TableCreated(info=info, route=route) for info, route in tables)
    return catalog_of(TablespaceCreated(info=SPACE), *made)


def led(table: int, *leaders: str, **fields: object) -> tuple[TableInfo, TableRoute]:
    info = table_info(table, f"t{table}", len(leaders)).model_copy(update=fields)
    return info, table_route(table, leaders)


def planned(catalog: Catalog, begun: Begun = NOTHING_BEGUN) -> dict[str, str]:
    """Region -> its new node, of the moves from dn-1 that begin now, beside those that have."""
    rules = DrainRules("dn-1", (), begun, begun)
    groups = at_once(leaving_groups(catalog, "dn-1"))
    moves = at_once(moves_due(catalog, (view("dn-1"), *OTHERS), rules, groups, "test"))
    return {move.region_id: move.to_node for move in moves}


def test_given_only_copies_when_planned_then_each_moves_and_no_node_gets_too_many_at_once() -> None:
    catalog = holding(led(1024, *["dn-1"] * 20))

    first = planned(catalog)

    arrivals = list(first.values())
    assert arrivals.count("dn-2") == arrivals.count("dn-3") == ARRIVALS_MAX
    assert planned(catalog, first) == {}, "as long as none has arrived"
    (region, node), *rest = first.items()
    (following,) = planned(catalog_without(catalog, region, node), dict(rest))
    assert following not in first


def catalog_without(catalog: Catalog, region_id: str, node: str) -> Catalog:
    """The catalog once *node* leads the region."""
    (table,) = catalog.tables.values()
    regions = tuple(
        region.model_copy(update={"leader": node}) if region.region_id == region_id else region
        for region in table.route.region_routes
    )
    return holding((table.info, table.route.model_copy(update={"region_routes": regions})))


def test_given_regions_of_one_group_when_planned_then_they_move_to_one_node() -> None:
    """To where another of them is led; else to where the first of them goes."""
    space = {"tablespace_id": SPACE.tablespace_id}
    tables = (
        led(1024, "dn-1", "dn-1", **space),
        led(1025, "dn-1", "dn-1", **space),
        led(1026, "dn-1", "dn-2", **space),
    )

    to = planned(holding(*tables))

    here = [[to.get(region) for region in region_ids(info.table_id, 2)] for info, _ in tables]
    assert {nodes[0] for nodes in here} == {"dn-3"}, "the one with fewest regions"
    assert {nodes[1] for nodes in here[:2]} == {"dn-2"}


def test_given_a_group_whose_node_is_full_for_now_when_planned_then_the_region_waits() -> None:
    space = {"tablespace_id": SPACE.tablespace_id}
    catalog = holding(led(1024, "dn-1", **space), led(1025, "dn-3", **space))
    begun = {str(number): "dn-3" for number in range(ARRIVALS_MAX)}

    assert planned(catalog, begun) == {}
    assert set(planned(catalog).values()) == {"dn-3"}


def test_given_preferred_zones_when_planned_then_only_copies_go_there_or_wait_for_room() -> None:
    """dn-2 and dn-3 are alone in zones of their names."""

    def preferring(zone: str, **fields: object) -> Catalog:
        new = {"format": 3, "preferred_zones": (zone,)}
        default = PlacementCreated(info=default_placement(1).model_copy(update=new))
        info, route = led(1024, *["dn-1"] * 9, **fields)
        return catalog_of(
            default, TablespaceCreated(info=SPACE), TableCreated(info=info, route=route)
        )

    busier = planned(preferring("dn-2"))
    free = {str(number): "dn-3" for number in range(ARRIVALS_MAX)}
    grouped = planned(preferring("dn-2", tablespace_id=SPACE.tablespace_id))

    assert list(busier.values()) == ["dn-2"] * ARRIVALS_MAX, "the others wait for it"
    assert set(grouped.values()) == {"dn-2"}
    assert len(planned(preferring("dn-2"), free)) == ARRIVALS_MAX
    assert set(planned(preferring("far")).values()) == {"dn-2", "dn-3"}
    assert planned(preferring("dn-3"), free) == {}


def test_given_a_region_that_borrows_or_is_not_open_when_planned_then_it_waits() -> None:
    info, route = led(1024, "dn-1", "dn-1", "dn-1")
    first, second, third = route.region_routes
    regions = (
        first.model_copy(update={"borrows": ("/disks/dn-4/regions/1",)}),
        second.model_copy(update={"state": RegionState.OPENING}),
        third,
    )
    catalog = holding((info, route.model_copy(update={"region_routes": regions})))

    assert list(planned(catalog)) == [third.region_id]
    assert len(at_once(left(catalog, "dn-1", 8))) == 3


def test_given_rows_in_the_memory_of_a_node_when_planned_then_they_stay() -> None:
    catalog = holding(led(1024, "dn-1", engine=MEMORY))

    assert planned(catalog) == {}
    assert at_once(left(catalog, "dn-1", 8)) == []


def dropped(*tables: tuple[TableInfo, TableRoute]) -> Catalog:
    """These tables, each dropped."""
    made = [TableCreated(info=info, route=route) for info, route in tables]
    gone = [
        TableDropped(table_id=info.table_id, dropped_at_ms=1, dropped_by="p") for info, _ in tables
    ]
    return catalog_of(TablespaceCreated(info=SPACE), *made, *gone)


def planned_dropped(catalog: Catalog, *others: NodeView) -> dict[str, str]:
    """The same of regions of dropped tables."""
    rules = DrainRules("dn-1", (), {}, {})
    views = (view("dn-1"), *(others or OTHERS))
    moves = at_once(dropped_moves_due(catalog, views, rules, "test"))
    return {move.region_id: move.to_node for move in moves}


def test_given_dropped_tables_when_planned_then_their_regions_move_and_no_rows_in_memory() -> None:
    catalog = dropped(
        led(1024, *["dn-1"] * 20), led(1025, "dn-2"), led(1026, "dn-1", engine=MEMORY)
    )

    to = planned_dropped(catalog)

    assert planned(catalog) == {}, "no living region"
    assert to.keys() <= set(region_ids(1024, 20))
    assert list(to.values()).count("dn-3") == ARRIVALS_MAX


def test_given_dropped_regions_that_cannot_move_when_planned_then_they_stay() -> None:
    info, route = led(1024, "dn-1", "dn-1", "dn-1")
    lost, borrows, moves = route.region_routes
    regions = (
        lost.model_copy(update={"state": RegionState.LOST}),
        borrows.model_copy(update={"borrows": ("/disks/dn-9/x",)}),
        moves,
    )
    catalog = dropped((info, route.model_copy(update={"region_routes": regions})))

    assert list(planned_dropped(catalog)) == [moves.region_id]


def test_given_a_dropped_region_with_a_copy_too_many_when_planned_then_a_living_member_leads() -> (
    None
):
    """It was dropped while it moved. A member on a dead node gets nothing."""
    info, route = led(1024, "dn-1")
    (region,) = route.region_routes
    copy = RegionCopy(node="dn-2", root="/disks/dn-2/r", role=CopyRole.IN_SYNC)
    copied = route.model_copy(update={"region_routes": (region.with_copies((copy,)),)})
    catalog = dropped((info, copied))
    dead = replace(view("dn-2"), alive=False)

    assert list(planned_dropped(catalog).values()) == ["dn-2"]
    assert list(planned_dropped(catalog, dead, view("dn-3")).values()) == ["dn-3"]
