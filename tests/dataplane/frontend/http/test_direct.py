"""Batches and reads by key take the short way, and say what the long one says."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.http import direct
from dataplane.frontend.http.app import build_app
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.service import FrontendService
from dataplane.region.engine.region import Region
from dataplane.region.engines.engine import ServedRegion
from metasrv_base.rows.split import body_of
from metasrv_base.wire.node.batches import BatchHeader
from tests.dataplane.frontend.bench import NODE_URL, Bench, T, running
from tests.dataplane.frontend.tables import A, B, feed_table
from tests.metasrv.api.raw import Sent, send

ARROW = {"accept": "application/vnd.apache.arrow.stream"}
ASKED = {"table_id": 1024, "schema_version": 1, "epoch": 1, "keys": []}


async def _asked(bench: Bench, query: str, body: Mapping[str, object], accept: str) -> list[object]:
    (region,) = bench.table.regions
    path = f"/node/v1/regions/{region.region_id}/get{query}"
    named = {"accept": accept, "x-request-id": "one"}
    request = httpx.Request("POST", NODE_URL + path, json=body, headers=named)
    answer = await bench.way.handle_async_request(request)
    await answer.aread()
    return [answer.status_code, dict(answer.headers), answer.content]


def _region(bench: Bench) -> ServedRegion:
    (slot,) = bench.node
    assert slot.owner is not None
    return slot.owner.region


def _keys(bench: Bench) -> list[str]:
    return [
        key.hex()
        for part in _region(bench).reader.scan()
        for key in part.column("_key").to_pylist()
    ]


BODIES: Mapping[str, Mapping[str, object]] = {
    "rows": {},
    "a column": {"columns": [2]},
    "an index that is not there": {"index": 99},
    "a column that is not there": {"columns": [99]},
    "another epoch": {"epoch": 7},
    "a version to come": {"schema_version": 9},
    "another table": {"table_id": 5},
    "no key": {"keys": ["zz"]},
    "no body": {"keys": 1},
    "an epoch that is none": {"epoch": "7"},
    "a field too many": {"more": 1},
    "a bound": {"bytes_max": 1},
}


@pytest.mark.parametrize("accept", [ARROW["accept"], "application/json"])
@pytest.mark.parametrize("name", list(BODIES))
async def test_given_a_read_when_sent_both_ways_then_the_answers_are_the_same(
    name: str, accept: str
) -> None:
    async with running(feed_table(A, B, regions=1)) as bench:
        rows = [{"id": one, "a": one, "b": f"w{one}"} for one in range(20)]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        head = {"table_id": bench.table.id, "schema_version": bench.table.schema_version}
        body = {**ASKED, **head, "keys": _keys(bench)[:3], **BODIES[name]}

        short = await _asked(bench, "", body, accept)
        long = await _asked(bench, "?way=long", body, accept)

        assert short == long


def _batch(**header: int) -> bytes:
    head: dict[str, Any] = {"table_id": 1024, "schema_version": 1, "epoch": 1, **header}
    sent = BatchHeader(statement_id="s", maintains_indexes=True, **head)
    rows = {"_key": pa.array([b"k"]), "_op": pa.array([0], pa.uint8()), "c1": pa.array([1])}
    return body_of(pa.RecordBatch.from_pydict(rows), sent)


BATCHES: Mapping[str, Callable[[], bytes]] = {
    "rows": _batch,
    "another epoch": partial(_batch, epoch=7),
    "another table": partial(_batch, table_id=5),
    "no stream": lambda: b"x",
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", list(BATCHES))
async def test_given_a_batch_when_sent_both_ways_then_the_answers_are_the_same(name: str) -> None:
    async def sent(query: str) -> list[object]:
        async with running(feed_table(A, B, regions=1)) as bench:
            (region,) = bench.table.regions
            url = f"{NODE_URL}/node/v1/regions/{region.region_id}/batch{query}"
            body = BATCHES[name]()
            request = httpx.Request("POST", url, content=body, headers={"x-request-id": "one"})
            answer = await bench.way.handle_async_request(request)
            await answer.aread()
            return [answer.status_code, dict(answer.headers), answer.content]

    short, long = await sent(""), await sent("?way=long")

    assert short == long


REQUESTS = [
    ("GET", "/main/public/t/rows?key=3"),
    ("GET", "/1024/rows?key=3"),
    ("GET", "/main/public/t/rows?key=99"),
    ("GET", "/main/public/t/rows?key=x"),
    ("GET", "/main/public/t/rows"),
    ("GET", "/main/public/t/rows?index=none&eq=1"),
    pytest.param("GET", "/main/public/none/rows?key=3", marks=pytest.mark.slow),  # it waits 2 s
    ("GET", "/none/rows?key=3"),
    ("GET", "/main/public/t/scan?apart=true&limit=4"),
    ("GET", "/main/public/t/scan?limit=0"),
    ("POST", "/main/public/t/rows/get"),
    ("POST", "/main/public/t/rows"),
    ("DELETE", "/main/public/t/rows"),
    ("GET", "/main/public/t/rows/get"),
    ("GET", "/a/b/c/d/rows"),
]


@pytest.mark.parametrize("accept", [ARROW["accept"], "application/json"])
@pytest.mark.parametrize(("method", "path"), REQUESTS)
async def test_given_a_request_when_sent_both_ways_then_a_frontend_says_the_same(
    method: str, path: str, accept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(feed_table(A, B, regions=2)) as bench:
        rows = [{"id": one, "a": one, "b": f"w{one}"} for one in range(9)]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        headers = {"accept": accept, "x-request-id": "one", "idempotency-key": "k"}
        body = b'{"keys":[[3],[4]]}' if path.endswith("get") else b'{"op":"upsert","rows":[]}'
        parts = [body] if method == "POST" else [b""]
        if method == "POST":
            headers["content-type"] = "application/json"
        sent = Sent(method, f"/v1/tables{path}", headers, parts)

        short = await send(build_app(bench.service), sent)
        monkeypatch.setattr(direct, "_ROUTES", {})
        long = await send(build_app(bench.service), sent)

        assert short == long


async def test_given_rows_in_files_when_they_are_in_memory_then_no_thread_looks_them_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(feed_table(A, B, regions=1)) as bench:
        rows = [{"id": one, "a": one, "b": "x"} for one in range(20)]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        _region(bench).maintenance.flush()
        threads = list[object]()
        to_thread = asyncio.to_thread

        async def counted(work: object, *args: object) -> object:
            threads.append(work)
            return await to_thread(work, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(asyncio, "to_thread", counted)

        async def read() -> list[object]:
            page = await bench.service.reads.by_key(T, lambda layout: (7,))
            found: list[object] = page.rows.to_pylist()
            return found

        first, taken = await read(), len(threads)
        second = await read()

        assert taken == 1, "a block had to be read"
        assert len(threads) == 1
        assert first == second == [{"id": 7, "a": 7, "b": "x"}]


async def test_given_a_lock_that_is_held_when_asked_on_the_loop_then_it_is_not_waited_for() -> None:
    async with running(feed_table(A, B, regions=1)) as bench:
        rows = [{"id": 1, "a": 1, "b": "x"}]
        await bench.service.writes.rows(T, Op.INSERT, rows, "fill")
        region, (key,) = _region(bench), map(bytes.fromhex, _keys(bench))
        assert isinstance(region, Region)

        there = region.reader.get_resident([key], None, 1)
        with region._content._lock:
            waiting = region.reader.get_resident([key], None, 1)

        assert there is not None
        assert there.num_rows == 1
        assert waiting is None


@pytest.mark.slow
async def test_given_a_route_of_the_framework_that_fails_when_asked_then_the_door_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(service: FrontendService) -> str:
        raise RuntimeError("a fault")

    async with running() as bench:
        monkeypatch.setattr(FrontendService, "exposition", fail)
        failed = await send(build_app(bench.service), Sent("GET", "/metrics"))

    assert (failed.status, failed.json["code"]) == (500, "internal")
