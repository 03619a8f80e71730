"""Readers of a real datanode that stop receiving: each loses its own slot, and no other's."""

from contextlib import ExitStack

import pytest

from benchmarks.data.memory_load import Shape, key_of
from dataplane.datanode.regions.scan_slots import SLOTS, ReaderKind
from tests.dataplane.datanode.conftest import StartNode
from tests.dataplane.datanode.process.loads import READS, ROWS, stalled, status
from tests.metasrv.playground.waiting import until
from tests.node_conformance.node import ARROW, Node

pytestmark = pytest.mark.process

ROW_BYTES = 100_000
LIMIT_S = 240
"""A reader that receives nothing is cut off after 20 s."""


@pytest.fixture
def filled(start_node: StartNode) -> tuple[Node, int]:
    _, node = start_node()
    region = node.created()
    body = Shape(2, ROW_BYTES).body([key_of(at) for at in range(ROWS)], "s-1")
    url = f"{node.url}/node/v1/regions/{region}/batch"
    assert node.http.post(url, content=body, headers={"content-type": ARROW}).status_code == 200
    return node, region


@pytest.mark.parametrize("kind", [ReaderKind.STREAM, ReaderKind.KEYS])
def test_given_readers_that_receive_nothing_when_others_read_then_only_their_kind_waits_for_them(
    filled: tuple[Node, int], kind: ReaderKind
) -> None:
    node, region = filled
    call, accept, asked = READS[kind]

    with ExitStack() as readers:
        statuses = [b"200"]
        while statuses[-1] == b"200" and len(statuses) <= SLOTS[kind] + 1:
            statuses.append(readers.enter_context(stalled(node, region, call, accept, **asked)))
        assert statuses[-1] == b"503", "their slots and their memory are bounded"
        assert {
            other: status(node, region, other) for other in set(ReaderKind) - {kind}
        } == dict.fromkeys(set(ReaderKind) - {kind}, 200)

        until(lambda: status(node, region, kind) == 200, LIMIT_S)
