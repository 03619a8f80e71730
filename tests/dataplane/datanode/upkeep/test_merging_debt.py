"""A real datanode whose merges fail: writers are refused when too many files wait."""

from pathlib import Path

import pytest

from dataplane.region.engine.region import FILES_MAX
from tests.dataplane.datanode.conftest import StartNode
from tests.metasrv.playground.waiting import until
from tests.node_conformance.node import Node, Write

pytestmark = [pytest.mark.process, pytest.mark.slow]

FAILED = 'datanode_merges_total{outcome="failed",role="leader"}'
LIMIT_S = 240


def add_file(node: Node, region: int, number: int) -> None:
    node.write(region, [Write(b"%04d" % number, number)], f"s-{number}")
    flushed = node.http.post(f"{node.url}/node/v1/regions/{region}/flush")
    assert flushed.status_code == 200, flushed.text


def test_given_merges_that_fail_when_files_pile_up_then_writes_get_503_and_other_regions_take_them(
    start_node: StartNode,
) -> None:
    _, node = start_node()
    region, other = node.created(), node.created()
    add_file(node, region, 0)
    (first,) = Path(node.root_of(region)).glob("data/*.parquet")
    first.write_bytes(bytes(first.stat().st_size))
    for number in range(1, 4):
        add_file(node, region, number)
    until(lambda: node.metric(FAILED) >= 1, LIMIT_S)

    for number in range(4, FILES_MAX):
        add_file(node, region, number)
    refused = node.post_batch(region, [Write(b"x", 1)], "s-x")

    assert refused.status_code == 503, refused.text
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["facts"]["files"] == FILES_MAX
    assert node.post_batch(other, [Write(b"x", 1)], "s-x").status_code == 200
