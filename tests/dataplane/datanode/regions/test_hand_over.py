"""A leader of copies on real datanodes hands its region over: writes wait, none is lost."""

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.copied import CopiedRegion, started, until
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process


def of_two(start_node: StartNode) -> CopiedRegion:
    _, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"}, min_in_sync=2)
    region.create()
    region.write(1)
    return region


def post(region: CopiedRegion, node: Node, number: int, epoch: int) -> httpx.Response:
    rows = [Write(f"k{number}".encode(), number)]
    return node.post_batch(region.region, rows, f"s{number}", epoch=epoch)


def waits_for_copies(node: Node) -> bool:
    """Whether a write there is in the log, and waits for other nodes."""
    shown = node.http.get(f"{node.url}/metrics").text
    return 'datanode_regions_waiting{on="copies"} 1' in shown


def test_given_writes_that_are_held_when_another_leads_then_they_are_told_and_it_serves_at_once(
    start_node: StartNode,
) -> None:
    region = of_two(start_node)
    former, following = region.nodes["dn-1"], region.nodes["dn-2"]
    region.take("dn-2", region.hand_over_order("prepare", at="dn-2"))
    region.take("dn-1", region.hand_over_order("prepare"))
    region.take("dn-1", region.hand_over_order("hold", "dn-2", 10_000))
    with ThreadPoolExecutor(3) as writers:
        held = writers.submit(post, region, former, 2, 1)
        early = writers.submit(post, region, following, 3, 2)
        assert former.post(region.region, "scan", epoch=1).status_code == 200, "reads go on"
        assert not held.done()

        region.name_next("dn-2")
        list(writers.map(region.tell, ["dn-1", "dn-2"]))

        answer = held.result(30)
        assert answer.status_code == 409, answer.text
        assert answer.json()["code"] == "stale-epoch"
        facts = answer.json()["facts"]
        assert (facts["epoch"], facts["leader"]) == (2, "dn-2")
        assert facts["address"] == following.url
        assert early.result(30).status_code == 200, early.result().text
    region.write(2)

    assert region.rows() == {1, 2, 3}


@pytest.mark.case("greptime 123")
def test_given_a_leader_that_is_replaced_by_nobody_when_the_time_is_over_then_writes_go_on(
    start_node: StartNode,
) -> None:
    region = of_two(start_node)

    region.take("dn-1", region.hand_over_order("hold", "dn-2", 300))
    answer = post(region, region.leader, 2, 1)

    assert answer.status_code == 200, answer.text
    region.take("dn-1", region.hand_over_order("hold", "dn-2", 10_000))
    region.take("dn-1", region.hand_over_order("resume"))
    assert post(region, region.leader, 3, 1).status_code == 200
    assert region.rows() == {1, 2, 3}


@pytest.mark.case("greptime 124")
def test_given_a_copy_that_does_not_answer_when_handed_over_then_refused_and_writes_go_on(
    start_node: StartNode,
) -> None:
    """It is in the set still, and lacks a row."""
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    processes["dn-2"].kill()
    with ThreadPoolExecutor(1) as writers:
        waits = writers.submit(region.write, 2)
        until(region.leader, lambda: waits_for_copies(region.leader))

        order = region.hand_over_order("hold", "dn-2", 10_000)
        (result,) = region.leader.order(order).results

        assert result.error is not None
        assert result.error.code == "not-ready"
        region.change(dn_2="learner")
        region.tell("dn-1")
        waits.result(30)
    (result,) = region.leader.order(region.hand_over_order("hold", "dn-2", 100)).results
    assert result.error is not None
    assert result.error.code == "action-not-allowed", "it is in the set no more"
    assert region.rows() == {1, 2}


def test_given_a_former_leader_when_ordered_to_hand_over_then_stale(start_node: StartNode) -> None:
    region = of_two(start_node)
    late = region.hand_over_order("hold", "dn-2", 10_000)
    region.name_next("dn-2")
    region.tell("dn-2", "dn-1")

    (result,) = (
        region.nodes["dn-1"]
        .order(late.model_copy(update={"number": region.nodes["dn-1"].next_number()}))
        .results
    )

    assert result.error is not None
    assert result.error.code == "stale-epoch"


def test_given_a_new_leader_whom_nobody_follows_when_prepared_then_not_ready(
    start_node: StartNode,
) -> None:
    region = of_two(start_node)
    region.name_next("dn-2")
    region.tell("dn-2")

    (result,) = region.nodes["dn-2"].order(region.hand_over_order("prepare")).results

    assert result.error is not None
    assert result.error.code == "not-ready"
    region.tell("dn-1")
    region.take("dn-2", region.hand_over_order("prepare"))
