"""Nodes of new regions, and the nodes that take the place of those that have died since."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from keys.catalog.catalog import Catalog
from keys.model.tables import TableRoute
from metasrv_base.errors import Unavailable
from procedures.ports import NodeView
from procedures.steps.copies.new_routes import elsewhere, hindered, place_regions, table_route
from tests.keys.catalog.logs import first_update
from tests.procedures.harness.copies.copied_tables import copied_info
from tests.procedures.harness.tables import table_info

CATALOG = Catalog().apply(first_update(), 1)
BASE = NodeView("dn-1", "a", "/data", alive=True, regions=0, disk_free_bytes=1 << 40)
NODES = tuple(
    replace(BASE, node_id=f"dn-{number}", zone=f"z{number}", root=f"/dn-{number}")
    for number in range(1, 5)
)
ALONE, OF_TWO, OF_THREE = (
    table_info(1090, "new", 3),
    copied_info(1090, "new", 3, 2),
    copied_info(1090, "new", 3, 3),
)


def without(*dead: str, nodes: Sequence[NodeView] = NODES) -> tuple[NodeView, ...]:
    return tuple(replace(node, alive=node.node_id not in dead) for node in nodes)


def alive(nodes: Sequence[NodeView]) -> set[str]:
    return {node.node_id for node in nodes if node.takes_orders}


def placed(replicas: int, nodes: Sequence[NodeView] = NODES) -> TableRoute:
    info = {1: ALONE, 2: OF_TWO, 3: OF_THREE}[replicas]
    return table_route(1090, place_regions(info, range(3), CATALOG, nodes))


def homes(route: TableRoute) -> list[tuple[str, ...]]:
    return [region.nodes for region in route.region_routes]


def test_given_nodes_that_live_then_nothing_is_hindered() -> None:
    for replicas in (1, 2, 3):
        assert hindered(placed(replicas), alive(NODES)) == ()


def test_given_a_dead_node_then_its_region_begins_anew_on_the_emptiest_other() -> None:
    route = placed(1)
    assert homes(route) == [("dn-1",), ("dn-2",), ("dn-3",)]

    moved = elsewhere(ALONE, route, CATALOG, without("dn-1"))

    assert homes(moved) == [("dn-4",), ("dn-2",), ("dn-3",)]
    first = moved.region_routes[0]
    assert (first.epoch, first.root) == (2, f"/dn-4/regions/{first.region_id}-2")
    assert moved.region_routes[1:] == route.region_routes[1:]
    assert hindered(moved, alive(without("dn-1"))) == ()


def test_given_a_dead_leader_of_three_copies_then_a_living_copy_leads_in_a_new_root() -> None:
    route = placed(3, NODES[:3])
    (left,) = hindered(route, alive(without("dn-1", nodes=NODES[:3])))

    moved = elsewhere(OF_THREE, route, CATALOG, without("dn-1", nodes=NODES[:3]))

    changed = moved.region_routes[left.number]
    assert changed.nodes[0] != "dn-1"
    assert set(changed.nodes) == set(left.nodes)
    assert (changed.epoch, changed.copies_version) == (2, left.copies_version + 1)
    assert not set(changed.roots) & set(left.roots)
    others = [region for region in moved.region_routes if region.region_id != left.region_id]
    assert all(region in route.region_routes for region in others), "a majority can be made"


def test_given_one_of_two_copies_that_is_dead_then_both_begin_anew_on_living_nodes() -> None:
    route, nodes = placed(2), without("dn-2")
    left = hindered(route, alive(nodes))
    assert left == tuple(region for region in route.region_routes if "dn-2" in region.nodes)

    moved = elsewhere(OF_TWO, route, CATALOG, nodes)

    assert hindered(moved, alive(nodes)) == ()
    assert all(len(set(region.nodes)) == 2 for region in moved.region_routes)


def test_given_a_node_that_was_removed_then_its_regions_are_placed_anew() -> None:
    route, nodes = placed(3), NODES[1:]

    moved = elsewhere(OF_THREE, route, CATALOG, nodes)

    assert hindered(moved, alive(nodes)) == ()
    assert all(region.leader != "dn-1" for region in moved.region_routes)


def test_given_nobody_else_who_lives_when_placed_again_then_each_node_s_reason() -> None:
    nodes = without("dn-1", "dn-2", "dn-3", "dn-4")

    with pytest.raises(Unavailable, match="node-not-eligible") as refusal:
        elsewhere(ALONE, placed(1), CATALOG, nodes)

    assert refusal.value.facts["reasons"] == dict.fromkeys(
        (node.node_id for node in nodes), "not alive"
    )
