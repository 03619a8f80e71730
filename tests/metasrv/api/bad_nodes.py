"""Wrong messages of a node: rows of scripts/documents/input_cases.py, by their numbers."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson

from metasrv.api.http.body import HEARTBEAT_BYTES_MAX
from metasrv_base.wire.frontend.holders import PINS_MAX
from metasrv_base.wire.node.nodes import RegionColumns
from tests.metasrv.api.bad_requests import Row, body
from tests.metasrv.api.raw import JSON, Sent
from tests.metasrv.api.rig import beat, registration
from tests.metasrv.holders import samples as holders
from tests.metasrv.nodes.samples import stat

REGION = str(1024 << 32)
TWICE = RegionColumns.of([stat(REGION), stat(REGION)]).model_dump()


def register(**changes: Any) -> Sent:
    """A registration that is right but for *changes*."""
    said = registration("dn-9").model_dump(mode="json") | changes
    return body(orjson.dumps(said), path="/internal/v1/nodes/dn-9/register")


def heartbeat(node: str = "dn-1", **changes: Any) -> Sent:
    """A heartbeat that is right but for *changes*."""
    said = beat(node, 2).model_dump(mode="json") | changes
    path = f"/internal/v1/nodes/{node}/heartbeat"
    return body(orjson.dumps(said), method="PUT", path=path)


def resources(**changes: Any) -> dict[str, Any]:
    return {**beat("dn-1").resources.model_dump(mode="json"), **changes}


def rows() -> Iterator[Row]:
    wrong = "invalid-request"
    for root in (
        "data",
        "../data",
        "/data/../etc",
        "/data/./x",
        "file:///etc",
        "s3://u:p@b",
        "/a\0",
    ):
        yield Row(86, root, register(root=root), 422, wrong)
    for host in (
        "0.0.0.0:1",
        "169.254.169.254:80",
        "[fe80::1]:80",
        "[::ffff:127.0.0.1]:80",
        "2130706433:80",
        "0x7f.1:80",
        "224.0.0.1:80",
        "evil@host:80",
        "host:0",
        "host:65536",
        "host",
        "host:80/path",
    ):
        yield Row(89, host, register(address=f"http://{host}"), 422, wrong)
    yield Row(89, "no scheme", register(address="localhost:2379"), 422, wrong)
    yield Row(92, "never registered", heartbeat("dn-8"), 404, "not-found")
    old = heartbeat(incarnation="i-0")
    yield Row(92, "an old process", old, 410, "stale-incarnation")
    for number in (2**63, 2**53, -1):
        yield Row(93, str(number), heartbeat(sequence=number), 422, wrong)
    yield Row(95, "twice", heartbeat(regions=TWICE), 422, wrong)
    short = {**TWICE, "epoch": [1]}
    yield Row(95, "a column too short", heartbeat(regions=short), 422, wrong)
    long = {**JSON, "content-length": str(HEARTBEAT_BYTES_MAX + 1)}
    path = "/internal/v1/nodes/dn-1/heartbeat"
    yield Row(95, "a million", Sent("PUT", path, long, ()), 413, "body-too-large")
    for free in (-1, 1e308, True):
        sent = heartbeat(resources=resources(disk_free_bytes=free))
        yield Row(96, str(free), sent, 422, wrong)
    for text in (b"NaN", b"1e999"):
        sent = heartbeat(resources=resources(disk_free_bytes=7_777))
        raw = sent.parts[0].replace(b"7777", text)
        yield Row(96, text.decode(), replace(sent, parts=(raw,)), 400, "malformed-json")
    yield Row(98, "registers", register(cluster_id="another"), 409, "wrong-cluster")
    yield Row(98, "beats", heartbeat(cluster_id="another"), 409, "wrong-cluster")


def holder(**changes: Any) -> Sent:
    """A registration of a holder that is right but for *changes*."""
    said = holders.registration("fe-9").model_dump(mode="json") | changes
    return body(orjson.dumps(said), path="/internal/v1/holders/fe-9/register")


def acknowledgement(holder_id: str = "fe-9", **changes: Any) -> Sent:
    """An acknowledgement that is right but for *changes*."""
    said = holders.acknowledgement(holder_id, 1, 1).model_dump(mode="json") | changes
    path = f"/internal/v1/holders/{holder_id}/acknowledge"
    return body(orjson.dumps(said), method="PUT", path=path)


def of_holders() -> Iterator[Row]:
    """The same rows, of those who hold a schema lease."""
    wrong = "invalid-request"
    pin = holders.pin(1024, 1).model_dump(mode="json")
    for address in ("http://0.0.0.0:1", "http://evil@host:80", "ftp://host:1", "host"):
        yield Row(89, f"holder {address}", holder(address=address), 422, wrong)
    yield Row(92, "no holder", acknowledgement(), 404, "not-found")
    off = "/internal/v1/holders/{}?incarnation={}"
    unknown = Sent("DELETE", off.format("fe-9", "i"), {}, (b"",))
    yield Row(92, "no holder leaves", unknown, 404, "not-found")
    bad = Sent("DELETE", off.format("-", "i"), {}, (b"",))
    yield Row(92, "no id leaves", bad, 422, "invalid-identifier")
    nobody = Sent("DELETE", off.format("fe-9", ""), {}, (b"",))
    yield Row(92, "nobody leaves", nobody, 422, wrong)
    for number in (2**63, 2**53, -1, "1", True):
        yield Row(93, f"sequence {number}", acknowledgement(sequence=number), 422, wrong)
        yield Row(93, f"version {number}", acknowledgement(version=number), 422, wrong)
    yield Row(95, "pinned twice", acknowledgement(pinned=[pin, pin]), 422, wrong)
    yield Row(95, "pinned twice, registers", holder(pinned=[pin, pin]), 422, wrong)
    many = [{**pin, "table_id": number} for number in range(PINS_MAX + 1)]
    yield Row(95, "pinned too often", acknowledgement(pinned=many), 422, wrong)
    for change in ({"age_ms": -1}, {"transaction": ""}, {"transaction": "x" * 201}, {"x": 1}):
        sent = acknowledgement(pinned=[{**pin, **change}])
        yield Row(95, f"pin {change}", sent, 422, wrong)
    yield Row(96, "p99", acknowledgement(statement_p99_ms=-1), 422, wrong)
    yield Row(98, "holder registers", holder(cluster_id="another"), 409, "wrong-cluster")
    yield Row(98, "holder tells", acknowledgement(cluster_id="another"), 409, "wrong-cluster")
