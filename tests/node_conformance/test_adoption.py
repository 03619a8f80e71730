"""A node that another cluster adopts: the old one is refused, and the disk is told of."""

from collections.abc import Iterator

import httpx
import pytest

from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory
from tests.node_conformance.metasrv import CLUSTER, FakeMetasrv
from tests.node_conformance.node import Node, new_region

pytestmark = pytest.mark.process

NEW = "restored-cluster"


@pytest.fixture
def adopted_back(node: Node, metasrv: FakeMetasrv) -> Iterator[Node]:
    """The node, of the cluster of the other tests again afterwards."""
    yield node
    metasrv.told.cluster_id = CLUSTER
    adopt(node, CLUSTER, NEW)
    joined(node, metasrv, CLUSTER)


def adopt(node: Node, cluster_id: str, from_cluster_id: str) -> httpx.Response:
    request = AdoptRequest(
        cluster_id=cluster_id, from_cluster_id=from_cluster_id, node_id=node.node_id
    )
    return node.http.post(
        node.url + "/node/v1/adopt",
        content=request.model_dump_json(),
        headers={"content-type": "application/json"},
    )


def joined(node: Node, metasrv: FakeMetasrv, cluster_id: str) -> None:
    metasrv.wait_for(
        lambda: any(
            beat.node_id == node.node_id and beat.cluster_id == cluster_id
            for beat in metasrv.heard[-1:]
        )
    )


def test_given_a_node_when_adopted_then_the_old_cluster_is_refused_and_its_folders_are_told(
    adopted_back: Node, metasrv: FakeMetasrv
) -> None:
    node, region = adopted_back, new_region()
    node.order(node.create_order(region, root=f"{node.root}/regions/{region}-1"))
    metasrv.told.cluster_id = NEW

    answer = adopt(node, NEW, CLUSTER)
    again = adopt(node, NEW, CLUSTER)
    refused = node.post_orders(node.create_order(new_region()))
    other = adopt(node, "third", CLUSTER)
    said = node.http.get(f"{node.url}/node/v1/inventory?first={region}&last={region}")

    assert answer.status_code == again.status_code == 200, answer.text
    assert AdoptAnswer.model_validate_json(answer.content).cluster_id == NEW
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-cluster")
    assert (other.status_code, other.json()["code"]) == (409, "wrong-cluster")
    inventory = Inventory.model_validate_json(said.content)
    (root,) = inventory.roots
    assert (root.region_id, root.fence_epoch, root.manifest_epoch) == (str(region), 1, 1)
    assert inventory.next is None
    joined(node, metasrv, NEW)
    taken = node.order(node.create_order(new_region()), cluster_id=NEW)
    assert taken.results[0].error is None
