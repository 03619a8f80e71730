"""The choice of nodes for regions, and its limits."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.model.placing.placements import LabelCondition, NodeFilter
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.nodes import HEARTBEAT_REGIONS_MAX
from procedures.ports import NodeView
from procedures.steps.placing import (
    DISK_FREE_MIN_BYTES,
    NODE_REGIONS_MAX,
    NodeRules,
    place,
    place_in_groups,
    why_not,
)

NODE = NodeView("dn-1", "z", "/data", alive=True, regions=0, disk_free_bytes=1 << 40)


def node(name: str, regions: int) -> NodeView:
    return replace(NODE, node_id=name, regions=regions)


def views() -> st.SearchStrategy[tuple[NodeView, ...]]:
    labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"))
    drawn = st.tuples(st.sampled_from("zw"), labels, st.booleans(), st.integers(0, 3))
    return st.lists(drawn, max_size=4).map(
        lambda facts: tuple(
            replace(node(f"dn-{number}", load), zone=zone, labels=own, alive=alive)
            for number, (zone, own, alive, load) in enumerate(facts)
        )
    )


def filters() -> st.SearchStrategy[NodeFilter]:
    values = st.sets(st.sampled_from("xy"), min_size=1).map(lambda some: tuple(sorted(some)))
    conditions = st.dictionaries(st.sampled_from("ab"), values)
    zones = st.sets(st.sampled_from("zw")).map(lambda some: tuple(sorted(some)))
    return st.tuples(zones, conditions).map(
        lambda both: NodeFilter(
            zones=both[0],
            labels=tuple(
                LabelCondition(label=label, values=allowed) for label, allowed in both[1].items()
            ),
        )
    )


def meets(one: NodeView, node_filter: NodeFilter) -> bool:
    in_zone = not node_filter.zones or one.zone in node_filter.zones
    return in_zone and all(
        each.label in one.labels and one.labels[each.label] in each.values
        for each in node_filter.labels
    )


def test_given_a_full_node_when_regions_are_placed_then_others_take_them() -> None:
    nodes = (node("dn-1", NODE_REGIONS_MAX), node("dn-2", NODE_REGIONS_MAX - 5))

    chosen = place(nodes, 5)

    assert [one.node_id for one in chosen] == ["dn-2"] * 5


def test_given_nodes_that_are_full_before_all_are_placed_then_it_is_refused_with_the_limit() -> (
    None
):
    """A node of more regions than its heartbeat may report would never be heard again."""
    with pytest.raises(Unavailable) as refused:
        place((node("dn-1", NODE_REGIONS_MAX - 1), node("dn-2", NODE_REGIONS_MAX - 1)), 3)

    reason = f"{NODE_REGIONS_MAX} regions, {NODE_REGIONS_MAX} at most"
    assert refused.value.facts["reasons"] == {"dn-1": reason, "dn-2": reason}
    assert NODE_REGIONS_MAX < HEARTBEAT_REGIONS_MAX


def test_given_nodes_of_as_many_regions_when_placed_then_the_emptiest_zone_comes_first() -> None:
    nodes = (
        node("dn-1", 3),
        node("dn-2", 3),
        replace(node("dn-3", 3), zone="far"),
    )

    chosen = place(nodes, 3)

    assert [one.node_id for one in chosen] == ["dn-1", "dn-3", "dn-2"]


def test_given_a_disk_that_is_nearly_full_then_its_node_takes_no_region_and_it_is_told() -> None:
    full = replace(node("dn-1", 0), disk_free_bytes=DISK_FREE_MIN_BYTES - 1)

    chosen = place((full, node("dn-2", 9)), 2)
    with pytest.raises(Unavailable) as refused:
        place((full,), 1)

    assert [one.node_id for one in chosen] == ["dn-2", "dn-2"]
    assert refused.value.facts["reasons"] == {"dn-1": "255 MiB of disk free, 256 needed"}


@given(views(), filters(), st.integers(1, 5))
def test_given_any_filter_when_placed_then_every_node_meets_it_and_it_is_the_same_again(
    nodes: tuple[NodeView, ...], node_filter: NodeFilter, count: int
) -> None:
    able = [one for one in nodes if one.alive and meets(one, node_filter)]
    if not able:
        with pytest.raises(Unavailable) as refused:
            place(nodes, count, rules=NodeRules(node_filter=node_filter))
        reasons = refused.value.facts["reasons"]
        assert isinstance(reasons, dict)
        assert not nodes or reasons.keys() == {one.node_id for one in nodes}
        return

    chosen = place(nodes, count, rules=NodeRules(node_filter=node_filter))

    assert all(meets(one, node_filter) and one.alive for one in chosen)
    assert len(chosen) == count
    assert place(tuple(reversed(nodes)), count, rules=NodeRules(node_filter=node_filter)) == chosen


def test_given_a_node_outside_the_filter_then_it_says_which_condition_is_not_met() -> None:
    fast = NodeFilter(labels=(LabelCondition(label="disk", values=("ssd", "nvme")),))
    near = NodeFilter(zones=("eu", "us"), labels=fast.labels)
    slow = replace(node("dn-1", 0), labels={"disk": "hdd"})

    assert why_not(slow, ()) is None
    assert why_not(slow, (), node_filter=fast) == (
        "outside the node filter: label disk=ssd,nvme wanted"
    )
    assert why_not(node("dn-2", 0), (), node_filter=fast) is not None, "it has no such label"
    assert why_not(slow, (), node_filter=near) == "outside the node filter: zone eu or us wanted"
    assert why_not(replace(slow, labels={"disk": "nvme"}), (), node_filter=fast) is None


groups = st.lists(st.dictionaries(st.sampled_from(["dn-0", "dn-1", "dn-9"]), st.integers(1, 3)))


@given(views(), filters(), groups)
def test_given_groups_when_placed_then_a_region_joins_its_group_where_a_node_of_it_can_take_it(
    nodes: tuple[NodeView, ...], node_filter: NodeFilter, groups: list[dict[str, int]]
) -> None:
    able = {one.node_id for one in nodes if one.alive and meets(one, node_filter)}
    if not able:
        return

    chosen = place_in_groups(nodes, groups, rules=NodeRules(node_filter=node_filter))

    assert len(chosen) == len(groups)
    assert {one.node_id for one in chosen} <= able
    for one, group in zip(chosen, groups, strict=True):
        beside = {name: group[name] for name in group.keys() & able}
        assert not beside or beside.get(one.node_id) == max(beside.values())
    again = place_in_groups(
        tuple(reversed(nodes)), groups, rules=NodeRules(node_filter=node_filter)
    )
    assert [one.node_id for one in again] == [one.node_id for one in chosen]


def test_given_a_group_on_a_node_that_is_full_or_cordoned_then_its_region_goes_by_load() -> None:
    beside = [{"dn-1": 5, "dn-2": 1}, {"dn-1": 5}]
    full = (node("dn-1", NODE_REGIONS_MAX - 1), node("dn-2", 7), node("dn-3", 0))
    cordoned = (replace(node("dn-1", 0), cordoned=True), node("dn-2", 7), node("dn-3", 0))

    assert [one.node_id for one in place_in_groups(full, beside)] == ["dn-1", "dn-3"]
    assert [one.node_id for one in place_in_groups(cordoned, beside)] == ["dn-2", "dn-3"]


def test_given_a_tablespace_then_regions_without_a_group_go_where_it_has_fewest() -> None:
    """Regions that are placed together are spread first."""
    nodes = (node("dn-1", 0), node("dn-2", 9), node("dn-3", 5))
    tablespace = {"dn-1": 2, "dn-3": 1}

    chosen = place_in_groups(nodes, [{}] * 4, tablespace=tablespace)
    grouped = place_in_groups(nodes, [{"dn-1": 1}, {}], tablespace=tablespace)

    assert [one.node_id for one in chosen] == ["dn-2", "dn-3", "dn-1", "dn-2"]
    assert [one.node_id for one in grouped] == ["dn-1", "dn-2"], "the group goes first"
