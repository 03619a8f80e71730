"""Preferred zones of a placement, in each choice of nodes for leaders and copies."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.placing.placements import NodeFilter
from keys.model.tables import RegionRoute
from procedures.kinds.failover.failover_plan import DrainTarget, reroute_plan
from procedures.kinds.failover.next_leader import LeaderChoice, next_leader
from procedures.kinds.tables.truncate_plan import NewHomes, cut_plan
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import CopyRules, one_more, place_copies
from procedures.steps.placing import (
    NODE_REGIONS_MAX,
    NodeRules,
    place,
    place_in_groups,
    zone_rank,
)
from tests.procedures.harness.copies.copied_tables import IN_SYNC, copied_route
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import table_route

BASE = NodeView("dn-1", "a", "/data", alive=True, regions=0, disk_free_bytes=1 << 40)
B_THEN_A = NodeRules(preferred_zones=("b", "a"))


def node(name: str, zone: str, **facts: Any) -> NodeView:
    return replace(BASE, node_id=name, zone=zone, root=f"/{name}", **facts)


NODES = (node("dn-1", "a"), node("dn-2", "b", regions=9), node("dn-3", "c"), node("dn-4", "b"))
DEAD = replace(NODES[0], alive=False)


def chosen(*views: NodeView, rules: NodeRules = B_THEN_A, count: int = 1) -> list[str]:
    return [view.node_id for view in place(views, count, rules=rules)]


def test_given_preferred_zones_then_they_rank_in_order_and_all_others_are_alike() -> None:
    ranks = [zone_rank(zone, ("b", "a")) for zone in "bacd"]

    assert ranks == [0, 1, 2, 2]
    assert {zone_rank(zone, ()) for zone in "abc"} == {0}


def test_given_a_preferred_zone_then_its_nodes_take_all_new_regions_by_load() -> None:
    assert Counter(chosen(*NODES, count=4)) == {"dn-4": 2, "dn-2": 2}


def test_given_no_node_in_the_best_zone_then_the_next_one_takes_them_and_then_any() -> None:
    without_b = (NODES[0], replace(NODES[1], alive=False), NODES[2])
    full = (node("dn-2", "b", regions=NODE_REGIONS_MAX - 1), NODES[2])

    assert chosen(*without_b) == ["dn-1"]
    assert chosen(replace(NODES[0], cordoned=True), NODES[2]) == ["dn-3"]
    assert chosen(*full, count=2) == ["dn-2", "dn-3"]
    outside = replace(B_THEN_A, node_filter=NodeFilter(zones=("c",)))
    assert chosen(*NODES, rules=outside) == ["dn-3"], "the filter is strict, the zone is not"


def test_given_a_partition_group_then_it_chooses_within_the_best_zone_alone() -> None:
    groups: tuple[dict[str, int], ...] = ({"dn-1": 5}, {"dn-2": 1, "dn-1": 5}, {})

    homes = place_in_groups(NODES, groups, rules=B_THEN_A)
    by_group = place_in_groups(NODES, groups)
    left = place_in_groups((NODES[0], NODES[2]), groups, rules=B_THEN_A)

    assert [home.node_id for home in homes] == ["dn-4", "dn-2", "dn-2"]
    assert [home.node_id for home in by_group][:2] == ["dn-1", "dn-1"]
    assert [home.node_id for home in left] == ["dn-1", "dn-1", "dn-1"]


drawn_nodes = st.lists(
    st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 3)), min_size=1, max_size=5
).map(
    lambda drawn: tuple(
        node(f"dn-{number}", zone, alive=alive, regions=regions)
        for number, (zone, alive, regions) in enumerate(drawn)
    )
)
drawn_groups = st.lists(st.dictionaries(st.sampled_from(["dn-0", "dn-1"]), st.integers(1, 3)))


@given(drawn_nodes, drawn_groups, st.permutations("abc").map(lambda zones: tuple(zones[:2])))
def test_given_any_nodes_then_every_region_is_in_the_best_zone_that_can_take_it(
    nodes: tuple[NodeView, ...], groups: list[dict[str, int]], zones: tuple[str, ...]
) -> None:
    able = [view for view in nodes if view.alive]
    if not able:
        return

    homes = place_in_groups(nodes, groups, rules=NodeRules(preferred_zones=zones))

    best = min(zone_rank(view.zone, zones) for view in able)
    assert all(zone_rank(home.zone, zones) == best for home in homes)


def test_given_copies_then_they_spread_over_zones_first_and_then_go_to_preferred_ones() -> None:
    leader, rules = NODES[3], NodeRules(preferred_zones=("b", "c"))
    spread = (*NODES, node("dn-5", "c"))

    (two,) = place_copies(spread, (leader,), CopyRules(2, rules))
    (three,) = place_copies(spread, (leader,), CopyRules(3, rules))
    usual = place_copies((*spread, node("dn-0", "c")), (leader,), CopyRules(2))[0]

    assert [home.node_id for home in two] == ["dn-4", "dn-3"]
    assert {home.zone for home in three} == {"a", "b", "c"}
    assert [home.node_id for home in usual] == ["dn-4", "dn-0"]


def test_given_a_lost_copy_of_the_preferred_zone_then_one_more_is_made_there() -> None:
    nodes = (NODES[0], node("dn-2", "b", regions=9), NODES[2], node("dn-5", "d"))

    assert one_more(("dn-1", "dn-3"), nodes, (), B_THEN_A) == "dn-2"
    assert one_more(("dn-1", "dn-3"), nodes, (), NodeRules()) == "dn-5"
    assert one_more(("dn-1", "dn-2"), nodes, (), B_THEN_A) in {"dn-3", "dn-5"}, "spread goes first"


# -- other leaders


def copied(*others: str) -> RegionRoute:
    """A region that dn-1 leads, with copies in sync."""
    copies = tuple((name, IN_SYNC) for name in others)
    return copied_route(TABLE, ("dn-1",), (copies,)).region_routes[0]


@pytest.mark.parametrize(
    ("cordoned", "group", "leader"),
    [
        ("", {}, "dn-4"),
        ("", {"dn-2": 1, "dn-3": 9}, "dn-2"),
        ("dn-4", {}, "dn-2"),
        ("dn-2 dn-4", {}, "dn-3"),
    ],
)
def test_given_candidates_then_cordoned_goes_before_zone_and_zone_before_group_and_load(
    cordoned: str, group: dict[str, int], leader: str
) -> None:
    region = copied("dn-2", "dn-3", "dn-4")
    nodes = tuple(replace(view, cordoned=view.node_id in cordoned.split()) for view in NODES)
    dead = (replace(nodes[0], alive=False), *nodes[1:])
    route = copied_route(TABLE, ("dn-1",), (tuple((n, IN_SYNC) for n in region.other_nodes),))
    target = DrainTarget(
        "dn-1",
        (region.region_id,),
        groups={region.number: group},
        preferred_zones=B_THEN_A.preferred_zones,
    )

    switched = next_leader(region, nodes, LeaderChoice(None, None, ("b", "a")), group)
    (failed_over,) = reroute_plan(route, dead, target)

    assert switched.node == leader
    assert failed_over.region.leader == leader
    if not group:
        homes = NewHomes(B_THEN_A)
        (emptied,) = cut_plan(route.region_routes, dead, again=False, homes=homes)
        assert emptied.region.leader == leader


def test_given_a_named_target_then_it_leads_in_whatever_zone() -> None:
    region = copied("dn-2", "dn-3")
    choice = LeaderChoice("dn-3", None, ("b", "a"))

    assert next_leader(region, NODES, choice, {}).node == "dn-3"
    target = DrainTarget("dn-1", (region.region_id,), ("dn-3",), preferred_zones=("b",))
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", IN_SYNC), ("dn-3", IN_SYNC)),))
    (plan,) = reroute_plan(route, (DEAD, *NODES[1:]), target)
    assert plan.region.leader == "dn-3"


def test_given_only_copies_when_their_node_dies_then_they_go_to_the_preferred_zone() -> None:
    route = table_route(TABLE, ("dn-1", "dn-1"))
    ids = tuple(region.region_id for region in route.region_routes)
    nodes = (DEAD, node("dn-2", "b", regions=50), NODES[2])
    target = DrainTarget("dn-1", ids, preferred_zones=("b",))

    moved = reroute_plan(route, nodes, target)
    emptied = cut_plan(
        route.region_routes, nodes, again=False, homes=NewHomes(NodeRules(preferred_zones=("b",)))
    )
    usual = reroute_plan(route, nodes, DrainTarget("dn-1", ids))
    elsewhere = reroute_plan(route, (DEAD, NODES[2]), target)

    assert {plan.region.leader for plan in moved} == {"dn-2"}
    assert {cut.region.leader for cut in emptied} == {"dn-2"}
    assert {plan.region.leader for plan in usual} == {"dn-2", "dn-3"}
    assert {plan.region.leader for plan in elsewhere} == {"dn-3"}, "a preference, no requirement"
