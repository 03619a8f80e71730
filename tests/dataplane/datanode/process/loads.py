"""Rows that fill the memory of a node, and the keys that it holds."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import orjson

from benchmarks.data.memory_load import key_of
from benchmarks.load import request_of
from dataplane.datanode.config import DatanodeConfig
from dataplane.datanode.regions.scan_slots import ReaderKind
from tests.node_conformance.node import ARROW, TABLE, Node


def keys_of(node: Node, region: int, epoch: int) -> set[bytes]:
    rows = node.scan(region, epoch=epoch, limit=100_000).rows
    keys = {bytes.fromhex(row.key) for row in rows}
    assert len(keys) == len(rows)
    return keys


MEMORY = 26 << 20


FLAGS = {"memory_bytes": str(MEMORY), "block_cache_bytes": "0", "memtable_bytes": str(64 << 20)}


def rows_bytes() -> int:
    """The part for rows of a node with these flags."""
    given = {"node_id": "n", "root": "/n", "metasrv": "http://127.0.0.1:1", **FLAGS}
    return DatanodeConfig.read(given, {}, None).rows_bytes


ROWS = 140


"""In all 14 MB: more than sockets buffer, and less than the largest answer to a `get`."""


JSON = "application/json"


BUFFER = 4 << 10


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


READS: dict[ReaderKind, tuple[str, str, dict[str, object]]] = {
    ReaderKind.STREAM: ("scan", ARROW, {}),
    ReaderKind.PAGE: ("scan", ARROW, {"bytes_max": 64 << 20}),
    ReaderKind.JSON: ("scan", JSON, {}),
    ReaderKind.KEYS: ("get", ARROW, {"keys": [key_of(at).hex() for at in range(ROWS)]}),
}


"""One call of each kind that reads all rows."""


def status(node: Node, region: int, kind: ReaderKind) -> int:
    """Returns the status of a call whose reader receives all of the answer."""
    call, accept, asked = READS[kind]
    return node.post(region, call, accept, **asked).status_code
