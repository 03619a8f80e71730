"""A real datanode whose memory for rows is taken: writers are slowed, then refused until there is
room."""

from pathlib import Path

import httpx
import pytest

from benchmarks.data.memory_load import Shape, key_of
from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.loads import FLAGS, rows_bytes
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.metasrv.playground.waiting import until
from tests.node_conformance.node import ARROW, Node

pytestmark = pytest.mark.process

SLOW_FILES = "delay_enter=60000000"
"""`mkdir` of the folder of data files takes as long as strace looks on, at most 60 s, and until
then nothing is flushed."""
LIMIT_S = 240


def post(node: Node, region: int, statement: str, rows: int, text_bytes: int) -> httpx.Response:
    body = Shape(2, text_bytes).body([key_of(at) for at in range(rows)], statement)
    url = f"{node.url}/node/v1/regions/{region}/batch"
    return node.http.post(url, content=body, headers={"content-type": ARROW})


@pytest.fixture
def full(start_node: StartNode) -> tuple[DatanodeProcess, Node, int]:
    """A node with an empty region."""
    process, node = start_node(**FLAGS)
    return process, node, node.created()


def test_given_little_room_when_a_large_region_is_written_then_the_answer_waits_for_its_flush(
    full: tuple[DatanodeProcess, Node, int],
) -> None:
    _, node, region = full
    assert post(node, region, "s-1", 2, int(0.4 * rows_bytes())).status_code == 200

    answer = post(node, region, "s-2", 1, 8)

    assert answer.status_code == 200
    assert node.metric('datanode_region_files{of="all"}') >= 1


def test_given_no_room_when_written_then_503_with_retry_after_until_there_is_room(
    full: tuple[DatanodeProcess, Node, int], tmp_path: Path
) -> None:
    process, node, region = full
    other = node.created()

    with process.traced(tmp_path / "calls", "mkdir,mkdirat", SLOW_FILES):
        assert post(node, region, "s-1", 3, int(0.35 * rows_bytes())).status_code == 200
        refused = [post(node, region, "s-2", 1, 8), post(node, other, "s-3", 1, 8)]

    for one in refused:
        assert one.status_code == 503, one.text
        assert one.headers["retry-after"] == "1"
        problem = one.json()
        assert problem["code"] == "not-ready"
        assert problem["facts"]["limit_bytes"] == rows_bytes()
        assert "memory is full" in problem["facts"]["reason"]
    until(lambda: post(node, other, "s-3", 1, 8).status_code == 200, LIMIT_S)
