"""Nodes for the copies of new regions."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.placing.placements import LabelCondition, NodeFilter
from keys.model.tables import CopyRole
from metasrv_base.errors import Unavailable
from procedures.ports import NodeView
from procedures.steps.copies.copy_placing import CopyRules, Homes, new_copies, place_copies
from procedures.steps.placing import NODE_REGIONS_MAX, NodeRules, place

BASE = NodeView("dn-1", "a", "/data", alive=True, regions=0, disk_free_bytes=1 << 40)


def node(name: str, zone: str = "a", **facts: Any) -> NodeView:
    return replace(BASE, node_id=name, zone=zone, root=f"/{name}", **facts)


def names(homes: Homes) -> list[str]:
    return [home.node_id for home in homes]


def test_given_zones_when_placed_then_no_zone_has_two_copies_while_another_has_none() -> None:
    nodes = (node("dn-1", "a"), node("dn-2", "a"), node("dn-3", "b", regions=9), node("dn-4", "c"))

    (homes,) = place_copies(nodes, nodes[:1], CopyRules(3))

    assert names(homes) == ["dn-1", "dn-4", "dn-3"]


def test_given_one_zone_when_placed_then_the_nodes_with_fewest_new_copies_take_them() -> None:
    nodes = tuple(node(f"dn-{number}") for number in range(1, 5))

    placed = place_copies(nodes, nodes, CopyRules(2))

    assert Counter(home.node_id for homes in placed for home in homes[1:]) == dict.fromkeys(
        [one.node_id for one in nodes], 1
    )


def test_given_a_partition_group_when_placed_then_copies_go_where_those_of_the_group_are() -> None:
    nodes = (node("dn-1"), node("dn-2"), node("dn-3", regions=50), node("dn-4", "b"))
    groups = {0: {"dn-3": 2, "dn-4": 1}}

    (of_two,) = place_copies(nodes[:3], nodes[:1], CopyRules(2, groups=groups))
    (of_three,) = place_copies(nodes, nodes[:1], CopyRules(3, groups=groups))

    assert names(of_two) == ["dn-1", "dn-3"]
    assert names(of_three) == ["dn-1", "dn-4", "dn-3"], "another zone goes before the group"


def test_given_a_tablespace_when_placed_then_copies_without_a_group_go_where_it_has_fewest() -> (
    None
):
    nodes = (node("dn-1"), node("dn-2"), node("dn-3", regions=50))
    tablespace = {"dn-1": 1, "dn-2": 1}

    (usual,) = place_copies(nodes, nodes[:1], CopyRules(2))
    (spread,) = place_copies(nodes, nodes[:1], CopyRules(2, tablespace=tablespace))

    assert (names(usual), names(spread)) == (["dn-1", "dn-2"], ["dn-1", "dn-3"])


def test_given_a_filter_when_placed_then_copies_meet_it_too() -> None:
    ssd = NodeFilter(labels=(LabelCondition(label="disk", values=("ssd",)),))
    nodes = (
        node("dn-1", labels={"disk": "ssd"}),
        node("dn-2"),
        node("dn-3", labels={"disk": "ssd"}),
    )

    (homes,) = place_copies(nodes, nodes[:1], CopyRules(2, NodeRules(node_filter=ssd)))

    assert names(homes) == ["dn-1", "dn-3"]


@pytest.mark.parametrize(
    "facts", [{"alive": False}, {"cordoned": True}, {"regions": NODE_REGIONS_MAX}]
)
def test_given_too_few_nodes_when_placed_then_refused_with_the_reason_of_each(
    facts: dict[str, Any],
) -> None:
    nodes = (node("dn-1"), node("dn-2"), node("dn-3", **facts))

    with pytest.raises(Unavailable) as refused:
        place_copies(nodes, nodes[:1], CopyRules(3))

    assert refused.value.code == "node-not-eligible"
    assert refused.value.facts["eligible"] == 2
    reasons = refused.value.facts["reasons"]
    assert isinstance(reasons, dict)
    assert reasons.keys() == {"dn-3"}


def test_given_nodes_that_fill_up_when_placed_then_the_first_without_room_is_refused() -> None:
    nodes = (node("dn-1"), node("dn-2", regions=NODE_REGIONS_MAX - 1))

    assert names(*place_copies(nodes, nodes[:1], CopyRules(2))) == ["dn-1", "dn-2"]
    with pytest.raises(Unavailable, match="full"):
        place_copies(nodes, nodes[:1] * 2, CopyRules(2))


@given(
    zones=st.lists(st.sampled_from("abc"), min_size=3, max_size=6),
    regions=st.integers(1, 6),
    replicas=st.integers(1, 3),
)
def test_given_any_nodes_when_placed_then_copies_are_on_distinct_nodes_and_spread(
    zones: list[str], regions: int, replicas: int
) -> None:
    nodes = tuple(node(f"dn-{number}", zone) for number, zone in enumerate(zones))
    leaders = place(nodes, regions)

    for leader, homes in zip(
        leaders, place_copies(nodes, leaders, CopyRules(replicas)), strict=True
    ):
        assert homes[0] == leader
        assert len(set(names(homes))) == replicas
        assert len({home.zone for home in homes}) == min(replicas, len(set(zones)))


def test_given_new_copies_when_named_then_each_is_in_sync_in_a_root_of_its_node() -> None:
    copies = new_copies("77", 1, (node("dn-2"), node("dn-3")))

    assert [(copy.node, copy.root, copy.role) for copy in copies] == [
        ("dn-2", "/dn-2/regions/77-1", CopyRole.IN_SYNC),
        ("dn-3", "/dn-3/regions/77-1", CopyRole.IN_SYNC),
    ]
