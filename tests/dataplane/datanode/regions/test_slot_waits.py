"""Orders for a region whose leader waits for copies, on real datanodes."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from metasrv_base.wire.node.orders import OrderResponse
from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.copied import CopiedRegion, started, until
from tests.node_conformance.node import Node

pytestmark = pytest.mark.process


@dataclass
class Waiting:
    region: CopiedRegion
    write: Future[httpx.Response]
    schema: Future[OrderResponse]


def waits_for_copies(node: Node) -> bool:
    shown = node.http.get(f"{node.url}/metrics").text
    return 'datanode_regions_waiting{on="copies"} 1' in shown


def waiting_for_a_copy(start_node: StartNode, pool: ThreadPoolExecutor) -> Waiting:
    """The copy is killed; a row waits for it, and a schema for the row."""
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    leader = region.leader
    processes["dn-2"].kill()
    write = pool.submit(region.post, 2)
    until(leader, lambda: waits_for_copies(leader))
    schema = pool.submit(leader.order, leader.schema_order(region.region, 2))
    beats = len(leader.metasrv.heard)
    leader.metasrv.wait_for(lambda: len(leader.metasrv.heard) > beats)
    return Waiting(region, write, schema)


def test_given_an_order_that_waits_for_a_copy_when_the_region_is_closed_then_both_end(
    start_node: StartNode,
) -> None:
    """The table was truncated: the copy of before is deleted, and nobody will ever answer."""
    with ThreadPoolExecutor(2) as pool:
        waiting = waiting_for_a_copy(start_node, pool)
        region, leader = waiting.region, waiting.region.leader

        (closed,) = leader.order(leader.close_order(region.region, region.epoch)).results

        assert closed.error is None, closed.error
        assert waiting.write.result(30).status_code == 504, "the row is in the log: perhaps done"
        (result,) = waiting.schema.result(30).results
        assert result.error is not None


def test_given_an_order_that_waits_for_a_copy_when_the_route_has_it_no_more_then_it_is_done(
    start_node: StartNode,
) -> None:
    """The order that says so comes behind the one that waits."""
    with ThreadPoolExecutor(2) as pool:
        waiting = waiting_for_a_copy(start_node, pool)

        waiting.region.change(dn_2=None)
        waiting.region.tell("dn-1")

        assert waiting.write.result(30).status_code == 200
        (result,) = waiting.schema.result(30).results
        assert result.error is None
