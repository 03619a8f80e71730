"""Orders for a region whose leader waits for copies, on real datanodes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.copied import CopiedRegion, started, until
from tests.node_conformance.node import Node

pytestmark = pytest.mark.process


def waits_for_copies(node: Node) -> bool:
    shown = node.http.get(f"{node.url}/metrics").text
    return 'datanode_regions_waiting{on="copies"} 1' in shown


def test_given_an_order_that_waits_for_a_copy_when_the_region_is_closed_then_both_end(
    start_node: StartNode,
) -> None:
    """The table was truncated: the copy of before is deleted, and nobody will ever answer."""
    processes, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)
    leader = region.leader
    processes["dn-2"].kill()
    with ThreadPoolExecutor(2) as pool:
        write = pool.submit(region.post, 2)
        until(leader, lambda: waits_for_copies(leader))
        schema = pool.submit(leader.order, leader.schema_order(region.region, 2))
        beats = len(leader.metasrv.heard)
        leader.metasrv.wait_for(lambda: len(leader.metasrv.heard) > beats)

        (closed,) = leader.order(leader.close_order(region.region, region.epoch)).results

        assert closed.error is None, closed.error
        assert write.result(30).status_code == 504, "the row is in the log: perhaps done"
        (result,) = schema.result(30).results
        assert result.error is not None
