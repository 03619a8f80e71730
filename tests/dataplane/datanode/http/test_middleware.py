"""Bodies, headers and paths that are too large, odd or slow harm no node."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
import pytest

from dataplane.datanode.http.middleware import middleware_deps
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.regions.batch_body import read_batch
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Refused
from metasrv_base.rows.arrow_guard import check_messages
from metasrv_base.wire.http.asgi import Receive, Scope, Send
from metasrv_base.wire.http.strict_json import HEADER_BYTES_MAX
from serving.middleware import ServingMiddleware
from tests.dataplane.datanode.conftest import heard
from tests.dataplane.datanode.process.program import DatanodeProcess
from tests.metasrv.api.raw import Sent, send
from tests.node_conformance.metasrv import FakeMetasrv
from tests.node_conformance.node import ARROW, Node, Write, batch_body

process = pytest.mark.process


@process
@pytest.mark.parametrize(
    ("body", "media", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed-json"),
        (b'{"a":1,"a":2}', "application/json", 400, "malformed-json"),
        (b'{"a":NaN}', "application/json", 400, "malformed-json"),
        (b'{"a":"\\ud800"}', "application/json", 400, "malformed-json"),
        (b"\xff", "application/json", 400, "malformed-json"),
        (b"[" * 100 + b"]" * 100, "application/json", 400, "malformed-json"),
        (b"{}", "text/plain", 415, "unsupported-media-type"),
        (b"[]", "application/json", 422, "invalid-request"),
        (b"", "application/json", 422, "invalid-request"),
        (b'"' + b"x" * (2 << 20) + b'"', "application/json", 413, "body-too-large"),
    ],
)
def test_given_a_bad_body_when_sent_then_a_problem(
    shared: Node, body: bytes, media: str, status: int, code: str
) -> None:
    answer = shared.http.post(
        f"{shared.url}/node/v1/regions/1/scan", content=body, headers={"content-type": media}
    )

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == answer.json()["request_id"]


@process
@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"limit": True}, "/limit"),
        ({"limit": "7"}, "/limit"),
        ({"limit": 0}, "/limit"),
        ({"limit": 100_001}, "/limit"),
        ({"unknown": 1}, "/unknown"),
        ({"epoch": None}, "/epoch"),
        ({"columns": ["a"]}, "/columns/0"),
    ],
)
def test_given_a_field_that_is_wrong_when_sent_then_it_is_named(
    shared: Node, change: dict[str, object], pointer: str
) -> None:
    answer = shared.post(1, "scan", "*/*", **change)

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
    assert answer.json()["errors"][0]["pointer"] == pointer


@process
@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"from_key": "0"}, "/from_key"),
        ({"to_key": "zz"}, "/to_key"),
        ({"columns": [9]}, "/columns"),
    ],
)
def test_given_a_value_that_is_wrong_when_sent_then_it_is_named(
    shared: Node, body: dict[str, object], pointer: str
) -> None:
    answer = shared.post(shared.created(), "scan", "*/*", **body)

    assert answer.status_code == 422
    assert answer.json()["facts"]["pointer"] == pointer


@process
def test_given_a_path_or_header_that_is_odd_when_sent_then_a_problem(shared: Node) -> None:
    long = {"x-long": "x" * HEADER_BYTES_MAX}

    assert raw_status(shared, "/node/v1/regions/%ff") == 400
    assert raw_status(shared, "/node/v1/regions/..%2f1") == 400
    assert shared.http.get(shared.url + "/livez", headers=long).status_code == 431
    assert shared.http.get(shared.url + "/node/v2/x").status_code == 404
    assert shared.http.put(shared.url + "/node/v1/orders").status_code == 405


def raw_status(node: Node, path: str) -> int:
    """httpx would mend the path."""
    host, _, port = node.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        return int(connection.makefile("rb").readline().split()[1])


@process
def test_given_an_arrow_body_that_is_too_large_when_sent_then_refused(shared: Node) -> None:
    answer = shared.http.post(
        f"{shared.url}/node/v1/regions/1/batch",
        content=(b"x" * (1 << 20) for _ in range(70)),
        headers={"content-type": ARROW},
    )

    assert (answer.status_code, answer.json()["code"]) == (413, "body-too-large")


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_given_a_compressed_stream_when_judged_then_refused(codec: str) -> None:
    rows = pa.table({"a": pa.array([0] * 1_000_000)})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)

    assert sink.tell() < rows.nbytes // 50
    with pytest.raises(Refused, match="compressed"):
        check_messages(sink.getvalue().to_pybytes())


def test_given_a_dictionary_when_judged_then_refused() -> None:
    rows = pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)

    with pytest.raises(Refused, match="dictionary"):
        check_messages(sink.getvalue().to_pybytes())


def test_given_a_batch_cut_or_changed_anywhere_when_read_then_refused_or_sound() -> None:
    """Neither a crash nor an error that is not ours, whatever byte is missing or wrong."""
    whole = batch_body([Write(b"k%d" % number, number) for number in range(3)], "s1")
    read_batch(whole)

    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 0xFF
        for body in (whole[:place], bytes(flipped)):
            with suppress(Refused):
                read_batch(body)[1].validate(full=True)


def test_given_a_header_that_is_wrong_when_read_then_refused() -> None:
    rows = pa.table({"_key": pa.array([b"a"])})
    for header in ["{}", "[]", "x", json.dumps({"table_id": 1, "epoch": 1})]:
        sink = pa.BufferOutputStream()
        schema = rows.schema.with_metadata({b"metasrv.batch": header})
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_table(rows.cast(schema))

        with pytest.raises(Refused):
            read_batch(sink.getvalue().to_pybytes())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One node for all of these: no request of them changes it."""
    with FakeMetasrv() as metasrv:
        folder = tmp_path_factory.mktemp("door")
        running = DatanodeProcess("dn-1", folder, metasrv.url).start()
        heard(metasrv, running)
        with Node(running.url, "dn-1", running.root, metasrv) as node:
            yield node
        running.close()


async def test_given_a_route_that_breaks_when_asked_then_500_and_it_counts_as_such() -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise KeyError(scope["path"])

    metrics = NodeMetrics()
    door = ServingMiddleware(
        broken, replace(middleware_deps(metrics, SystemClock()), new_id=lambda: "r-1")
    )

    got = await send(door, Sent("GET", "/node/v1/regions", {}, ()))

    assert (got.status, got.json["code"], got.json["request_id"]) == (500, "internal", "r-1")
    (counted,) = metrics.requests.collect()
    assert {sample.labels["status"] for sample in counted.samples} == {"500"}
