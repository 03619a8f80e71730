"""A region whose storage is gone: said loudly, never replaced by an empty one, healed by putting
the storage back."""

import shutil
from pathlib import Path

import pytest

from metasrv_base.wire.node.orders import Order
from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.copied import CopiedRegion, started
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import Node, Write

pytestmark = pytest.mark.process


def code(node: Node, order: Order) -> str | None:
    error = node.order(order).results[0].error
    return None if error is None else error.code


def test_given_a_root_that_vanishes_when_written_then_lost_until_it_is_back(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    _, node = start_node()
    region = node.created()
    node.write(region, [Write(b"a", 1)], "s1")
    root = Path(node.root_of(region))
    kept = root.with_name("kept")

    shutil.move(root, kept)
    first = node.post_batch(region, [Write(b"b", 2)], "s2")
    metasrv.wait_for(lambda: metasrv.reports("dn-1", str(region)) == "lost")
    later = node.post_batch(region, [Write(b"c", 3)], "s3")

    assert first.status_code in (503, 504)
    assert (later.status_code, later.json()["code"]) == (503, "region-lost")
    assert 'datanode_regions{state="lost"} 1.0' in node.http.get(node.url + "/metrics").text

    assert code(node, node.open_order(region, epoch=1)) == "region-lost"
    assert not root.exists()

    shutil.move(kept, root)
    assert code(node, node.open_order(region, epoch=1)) is None
    assert b"a".hex() in {row.key for row in node.scan(region).rows}
    metasrv.wait_for(lambda: metasrv.reports("dn-1", str(region)) == "open")


def test_given_a_borrowed_root_that_is_gone_when_opened_then_lost_and_never_empty(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    _, first = start_node("dn-1")
    _, second = start_node("dn-2")
    region = first.created()
    first.write(region, [Write(b"a", 1)], "s1")
    gone = Path(first.root_of(region))
    kept = gone.with_name("kept")
    shutil.move(gone, kept)

    borrows = [str(gone)]
    assert code(second, second.open_order(region, epoch=2, borrows=borrows)) == "region-lost"
    metasrv.wait_for(lambda: metasrv.reports("dn-2", str(region)) == "lost")
    assert second.post(region, "scan", epoch=2).json()["code"] == "region-lost"

    shutil.move(kept, gone)
    assert code(second, second.open_order(region, epoch=2, borrows=borrows)) is None
    assert len(second.scan(region, epoch=2).rows) == 1


def test_given_a_leader_of_copies_whose_files_vanish_then_it_says_so_and_a_copy_leads(
    start_node: StartNode, metasrv: FakeMetasrv
) -> None:
    """Its process lives and answers: nothing else tells that it leads nothing."""
    _, nodes = started(start_node, ["dn-1", "dn-2"])
    region = CopiedRegion(nodes, {"dn-1": "leader", "dn-2": "in-sync"})
    region.create()
    region.write(1)

    shutil.rmtree(region.leader.root_of(region.region))
    assert region.post(2).status_code in (503, 504)
    metasrv.wait_for(lambda: metasrv.reports("dn-1", str(region.region)) == "lost")
    assert code(nodes["dn-1"], region.open_order("dn-1")) == "region-lost"

    region.gone.add("dn-1")
    region.promote("dn-2")
    region.change(dn_1=None)
    region.tell("dn-2")
    assert 1 in region.rows()
