"""Readers of a real datanode that stop receiving: each loses its own slot, and no other's."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import orjson
import pytest

from benchmarks.load import request_of
from benchmarks.memory_load import Shape, key_of
from dataplane.datanode.regions.scan_slots import SLOTS, Reader
from tests.dataplane.datanode.conftest import StartNode
from tests.metasrv.playground.waiting import until
from tests.node_conformance.node import ARROW, TABLE, Node

pytestmark = pytest.mark.process

ROW_BYTES = 100_000
ROWS = 140
"""In all 14 MB: more than sockets buffer, and less than the largest answer to a `get`."""
JSON = "application/json"
BUFFER = 4 << 10
LIMIT_S = 90
"""A reader that receives nothing is cut off after 20 s."""


@pytest.fixture
def filled(start_node: StartNode) -> tuple[Node, int]:
    _, node = start_node()
    region = node.created()
    body = Shape(2, ROW_BYTES).body([key_of(at) for at in range(ROWS)], "s-1")
    url = f"{node.url}/node/v1/regions/{region}/batch"
    assert node.http.post(url, content=body, headers={"content-type": ARROW}).status_code == 200
    return node, region


@contextmanager
def stalled(node: Node, region: int, call: str, accept: str, **asked: object) -> Iterator[bytes]:
    """A reader that receives the first bytes of the answer, and then nothing. Gives the status."""
    where = urlsplit(node.url)
    body = orjson.dumps({"table_id": TABLE, "schema_version": 1, "epoch": 1, **asked})
    path = f"/node/v1/regions/{region}/{call}"
    request = request_of("POST", path, {"accept": accept, "content-type": JSON}, body)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        connection.connect((where.hostname, where.port))
        connection.sendall(request)
        yield connection.recv(64).split(b" ", 2)[1]


READS: dict[Reader, tuple[str, str, dict[str, object]]] = {
    Reader.STREAM: ("scan", ARROW, {}),
    Reader.PAGE: ("scan", ARROW, {"bytes_max": 64 << 20}),
    Reader.JSON: ("scan", JSON, {}),
    Reader.KEYS: ("get", ARROW, {"keys": [key_of(at).hex() for at in range(ROWS)]}),
}
"""Of each kind, one that reads all rows."""


def status(node: Node, region: int, kind: Reader) -> int:
    """Of a reader that receives all of it."""
    call, accept, asked = READS[kind]
    return node.post(region, call, accept, **asked).status_code


@pytest.mark.parametrize("kind", [Reader.STREAM, Reader.KEYS])
def test_given_readers_that_receive_nothing_when_others_read_then_only_their_kind_waits_for_them(
    filled: tuple[Node, int], kind: Reader
) -> None:
    node, region = filled
    call, accept, asked = READS[kind]

    with ExitStack() as readers:
        statuses = [b"200"]
        while statuses[-1] == b"200" and len(statuses) <= SLOTS[kind] + 1:
            statuses.append(readers.enter_context(stalled(node, region, call, accept, **asked)))
        assert statuses[-1] == b"503", "their slots and their memory are bounded"
        assert {
            other: status(node, region, other) for other in set(Reader) - {kind}
        } == dict.fromkeys(set(Reader) - {kind}, 200)

        until(lambda: status(node, region, kind) == 200, LIMIT_S)
