"""Bugs planted in the choice of a new leader; found by regions outside their node filter."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import pytest

from keys.model.placing.placements import LabelCondition, NodeFilter
from metasrv_base.errors import Unavailable
from procedures.kinds.failover import failover_plan
from procedures.kinds.failover.failover_plan import DrainTarget, reroute_plan
from procedures.ports import NodeView
from procedures.steps import placing
from procedures.steps.placing import NodeRules
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import region_ids, table_route

ZONES = ("eu", "us")
DISKS: tuple[dict[str, str], ...] = ({"disk": "ssd"}, {"disk": "hdd"}, {})
FILTER = NodeFilter(zones=("eu",), labels=(LabelCondition(label="disk", values=("ssd", "nvme")),))
Place = Callable[..., tuple[NodeView, ...]]


def without(*lost: str) -> Place:
    """The product's own, with parts of the filter lost on their way."""
    left = FILTER.model_copy(update=dict.fromkeys(lost, ()))

    def place(
        nodes: Any, groups: Any, excluded: Any, rules: NodeRules, *_: object
    ) -> tuple[NodeView, ...]:
        return placing.place_in_groups(nodes, groups, excluded, NodeRules(rules.engine, left))

    return place


PLANTED: dict[str, Place] = {
    "a failover that ignores the node filter": without("zones", "labels"),
    "a failover that ignores the zones of the filter": without("zones"),
    "a failover that ignores the labels of the filter": without("labels"),
}


def outside() -> list[NodeView]:
    """New leaders that the filter does not allow, over all pairs of nodes that could take it."""
    kinds = tuple(product(ZONES, DISKS))
    gone = NodeView("dn-1", "eu", "/disks/dn-1", False, 0, 1 << 40)
    wrong = []
    for pair in product(kinds, kinds):
        nodes = [
            replace(gone, node_id=f"dn-{number}", zone=zone, alive=True, labels=labels)
            for number, (zone, labels) in enumerate(pair, start=2)
        ]
        wanted = DrainTarget("dn-1", region_ids(TABLE, 1), node_filter=FILTER)
        reroute = partial(reroute_plan, table_route(TABLE, ("dn-1",)), [gone, *nodes], wanted)
        try:
            (plan,) = reroute()
        except Unavailable:
            continue
        by_id = {node.node_id: node for node in nodes}
        leader = by_id[plan.region.leader]
        if leader.zone != "eu" or leader.labels.get("disk") != "ssd":
            wrong.append(leader)
    return wrong


def test_given_nodes_of_all_kinds_when_failed_over_then_no_region_leaves_its_filter() -> None:
    assert outside() == []


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_failed_over_then_a_region_is_outside_its_filter(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_plan, "place_in_groups", PLANTED[bug])

    assert outside()
