"""Where regions go: pure, from a route and what is known of the nodes."""

import pytest

from keys.model.placing.placements import NodeFilter
from keys.model.tables import RegionRoute, RegionState, TableRoute
from metasrv_base.engines import LSM
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.failover_plan import DrainTarget, reroute_plan
from procedures.ports import NodeView
from procedures.steps.placing import place
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import region_ids, table_route


def view(name: str, *, alive: bool = True, regions: int = 0, zone: str = "a") -> NodeView:
    return NodeView(name, zone, f"/disks/{name}", alive, regions, 1 << 40)


def test_given_a_route_then_only_regions_of_the_source_or_of_dead_nodes_leave() -> None:
    route = table_route(TABLE, ("dn-1", "dn-2", "dn-3"))
    nodes = [view("dn-1"), view("dn-2"), view("dn-3", alive=False)]

    plan = reroute_plan(route, nodes, DrainTarget("dn-1", region_ids(TABLE, 3)))

    assert [one.led_by for one in plan] == ["dn-1", "dn-3"]
    assert {one.region.leader for one in plan} == {"dn-2"}
    assert all(one.region.epoch == 2 for one in plan)
    assert all(one.region.borrows == one.leaves for one in plan)


def test_given_regions_that_had_left_then_the_source_takes_them_back_if_nobody_else_can() -> None:
    route = table_route(TABLE, ("dn-2", "dn-2"))
    ids = region_ids(TABLE, 2)
    nodes = [view("dn-1"), view("dn-2", alive=False)]

    plan = reroute_plan(route, nodes, DrainTarget("dn-1", ids, (), ids))
    others = reroute_plan(route, [*nodes, view("dn-3")], DrainTarget("dn-1", ids, (), ids))
    back = route.with_regions(tuple(one.region for one in plan))

    assert {one.region.leader for one in plan} == {"dn-1"}
    assert {one.region.leader for one in others} == {"dn-3"}
    assert reroute_plan(back, nodes, DrainTarget("dn-1", ids, (), ids)) == (), "it has come to stay"
    for targets, moving in ((("dn-2",), ids), ((), ids[:1])):
        with pytest.raises(Unavailable) as raised:
            reroute_plan(route, nodes, DrainTarget("dn-1", ids, targets, moving))
        assert "excluded" in str(raised.value.facts["reasons"])


def test_given_a_filter_then_a_region_waits_rather_than_leave_it_also_for_a_wanted_target() -> None:
    """A filter is how rows are kept in a country: no failover takes them out of it."""
    route = table_route(TABLE, ("dn-1",))
    ids = region_ids(TABLE, 1)
    nodes = [view("dn-1", alive=False, zone="eu"), view("dn-2", zone="us")]
    only = NodeFilter(zones=("eu",))

    for targets, moving in (((), ()), (("dn-2",), ()), ((), ids)):
        with pytest.raises(Unavailable) as raised:
            reroute_plan(route, nodes, DrainTarget("dn-1", ids, targets, moving, LSM, only))
        reasons = raised.value.facts["reasons"]
        assert isinstance(reasons, dict)
        assert reasons["dn-2"] == "outside the node filter: zone eu wanted"
    (plan,) = reroute_plan(
        route, [*nodes, view("dn-3", zone="eu")], DrainTarget("dn-1", ids, node_filter=only)
    )
    assert plan.region.leader == "dn-3"


def test_given_roots_that_were_never_announced_then_the_route_says_so_until_they_are_left() -> None:
    (region,) = table_route(TABLE, ("dn-1",)).region_routes
    wanted = DrainTarget("dn-1", (region.region_id,))

    second = moved_on(region, "dn-2", wanted)
    third = moved_on(second, "dn-3", wanted)
    opened = third.model_copy(update={"state": RegionState.OPEN, "announced": True})
    fourth = moved_on(opened, "dn-4", wanted)

    assert (second.borrows, second.unannounced) == ((region.root,), ())
    assert third.borrows == (region.root, second.root)
    assert third.unannounced == (second.root,)
    assert fourth.borrows == (region.root, second.root, third.root)
    assert fourth.unannounced == (second.root,)


def moved_on(region: RegionRoute, node: str, wanted: DrainTarget) -> RegionRoute:
    """Its leader is gone, and *node* is the only one left."""
    route = TableRoute(table_id=TABLE, version=1, region_routes=(region,))
    (moved,) = reroute_plan(route, [view(node)], wanted)
    assert moved.leaves == (region.root,)
    return moved.region


def test_given_nodes_then_the_one_with_fewest_regions_takes_the_next() -> None:
    nodes = [view("b", regions=1), view("a", regions=1), view("c", regions=0, zone="z")]

    chosen = place(nodes, 4)

    assert [node.node_id for node in chosen] == ["c", "a", "b", "c"]


def test_given_a_node_that_came_back_empty_then_it_does_not_take_a_whole_table() -> None:
    nodes = [view("a", regions=90), view("b", regions=90), view("c", regions=0)]

    chosen = place(nodes, 4)

    assert [node.node_id for node in chosen] == ["c", "a", "b", "c"]
