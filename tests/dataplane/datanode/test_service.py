"""Answers of real nodes about their copies: the role, and whether the region takes writes."""

import shutil
from pathlib import Path

import pytest

from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.copied import CopiedRegion, started
from tests.node_conformance.node import Write

pytestmark = pytest.mark.process


def of_three(start_node: StartNode) -> CopiedRegion:
    """dn-1 leads, and needs dn-2; dn-3 is a learner."""
    _, nodes = started(start_node, ["dn-1", "dn-2", "dn-3"])
    roles = {"dn-1": "leader", "dn-2": "in-sync", "dn-3": "learner"}
    region = CopiedRegion(nodes, roles, min_in_sync=2)  # type: ignore[arg-type]
    region.create()
    region.write(1)
    return region


def takes_writes(region: CopiedRegion, name: str = "dn-1") -> bool:
    return bool(region.nodes[name].body(region.region)["takes_writes"])


def test_given_copies_when_their_nodes_are_asked_then_each_says_its_role_and_the_leader_writes(
    start_node: StartNode,
) -> None:
    region = of_three(start_node)

    shown = [node.body(region.region) for node in region.nodes.values()]

    assert [body["role"] for body in shown] == ["leader", "in-sync", "learner"]
    assert [body["takes_writes"] for body in shown] == [True, False, False]
    region.change(dn_2="learner")
    region.tell("dn-1", "dn-2")
    body = region.nodes["dn-2"].body(region.region)
    assert (body["role"], body["takes_writes"]) == ("learner", False)


def test_given_fewer_copies_in_sync_than_the_minimum_then_the_leader_takes_no_writes(
    start_node: StartNode,
) -> None:
    region = of_three(start_node)

    region.change(dn_2="learner")
    region.tell("dn-1", "dn-2")

    assert region.refused(2) == "too-few-copies"
    body = region.nodes["dn-1"].body(region.region)
    assert (body["role"], body["stat"]["state"], body["takes_writes"]) == ("leader", "open", False)


def test_given_a_region_that_is_handed_over_then_it_takes_no_writes_until_that_is_over(
    start_node: StartNode,
) -> None:
    region = of_three(start_node)

    region.take("dn-1", region.hand_over_order("hold", "dn-2", 10_000))
    held = takes_writes(region)
    region.take("dn-1", region.hand_over_order("resume"))

    assert (held, takes_writes(region)) == (False, True)


def test_given_a_region_whose_files_are_lost_then_it_takes_no_writes(
    start_node: StartNode,
) -> None:
    _, node = start_node()
    region = node.created()
    node.write(region, [Write(b"a", 1)], "s1")
    root = Path(node.root_of(region))
    shutil.move(root, root.with_name("kept"))

    assert node.post_batch(region, [Write(b"b", 2)], "s2").status_code in (503, 504)
    node.metasrv.wait_for(lambda: node.metasrv.reports(node.node_id, str(region)) == "lost")

    body = node.body(region)
    assert (body["role"], body["stat"]["state"], body["takes_writes"]) == ("leader", "lost", False)
