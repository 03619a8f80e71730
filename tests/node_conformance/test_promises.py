"""Promises between nodes: what a node without copies answers, and what it refuses."""

import json

import httpx
import pytest

from metasrv_base.wire.node.promises import PromiseAnswer, PromiseRequest, RefusedPromise
from tests.node_conformance.metasrv import CLUSTER
from tests.node_conformance.node import Node, new_region

pytestmark = pytest.mark.process


def ask(node: Node, *regions: int, cluster_id: str = CLUSTER) -> httpx.Response:
    request = PromiseRequest(
        cluster_id=cluster_id,
        leader="dn-9",
        node_id=node.node_id,
        region_id=[str(region) for region in regions],
        epoch=[1 for _ in regions],
        root=[f"{node.root}/regions/{region}-1" for region in regions],
        led_root=[f"/dn-9/regions/{region}-1" for region in regions],
    )
    return post(node, request.model_dump_json())


def post(node: Node, body: str) -> httpx.Response:
    url = node.url + "/node/v1/copies/promises"
    return node.http.post(url, content=body, headers={"content-type": "application/json"})


def test_given_regions_of_which_a_node_has_no_copy_when_asked_then_it_promises_none(
    node: Node,
) -> None:
    led, unknown = new_region(), new_region()
    node.order(node.create_order(led, root=f"{node.root}/regions/{led}-1"))

    answer = ask(node, led, unknown)

    assert answer.status_code == 200, answer.text
    assert PromiseAnswer.model_validate_json(answer.content).refused == [
        RefusedPromise(region_id=str(region), reason="not-here", epoch=epoch)
        for region, epoch in ((led, 1), (unknown, 0))
    ]


def test_given_another_cluster_when_its_leader_asks_then_it_is_refused(node: Node) -> None:
    answer = ask(node, new_region(), cluster_id="another")

    assert answer.status_code == 409
    assert answer.json()["code"] == "wrong-cluster"


def test_given_columns_of_different_lengths_when_asked_then_the_request_is_refused(
    node: Node,
) -> None:
    body = json.loads(ask(node).request.content)

    answer = post(node, json.dumps({**body, "region_id": ["7"]}))

    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "invalid-request"
