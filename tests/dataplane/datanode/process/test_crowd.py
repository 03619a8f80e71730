"""A datanode with little memory, and many readers and writers at once: each ends, or gets 503."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from benchmarks.data.memory_load import Bench, Shape, bench
from benchmarks.load import connected, request_of
from tests.dataplane.datanode.process.loads import stalled
from tests.node_conformance.node import ARROW, TABLE

pytestmark = [pytest.mark.process, pytest.mark.slow]

BUDGET = 64 << 20
FLAGS = {"block_cache_bytes": str(8 << 20)}
SCANS = 200
SLOW = 16
LIMIT_S = 480
JSON = "application/json"


async def scanned(one: Bench, number: int) -> bytes:
    """The status of a page of a region."""
    region = one.regions[number % len(one.regions)]
    head = {"table_id": TABLE, "schema_version": 1, "epoch": one.epoch, "bytes_max": 4 << 20}
    path = f"/node/v1/regions/{region}/scan"
    kind = {"accept": ARROW, "content-type": JSON}
    async with connected(one.process.url) as connection:
        status, body = await connection.exchange(request_of("POST", path, kind, orjson.dumps(head)))
    assert status == b"200" or (status == b"503" and b"not-ready" in body), body
    return status


async def crowd(one: Bench) -> Counter[bytes]:
    """Scans of all regions at once, beside statements and flushes."""
    async with asyncio.timeout(LIMIT_S), asyncio.TaskGroup() as tasks:
        writes = tasks.create_task(asyncio.to_thread(one.fill, 40, 200))
        scans = [tasks.create_task(scanned(one, number)) for number in range(SCANS)]
        flushes = [
            tasks.create_task(asyncio.to_thread(one.node.http.post, url))
            for url in (f"{one.node.url}/node/v1/regions/{at}/flush" for at in one.regions)
        ]
    assert writes.result().answers[b"200"] == 40
    assert {done.result().status_code for done in flushes} <= {200, 503}
    return Counter(done.result() for done in scans)


def test_given_little_memory_when_a_crowd_reads_and_writes_then_all_end_before_and_after_a_takeover(
    tmp_path: Path,
) -> None:
    with bench(tmp_path, Shape(10), BUDGET, **FLAGS) as one, ExitStack() as slow:
        one.make_regions(8)
        one.fill(80, 500)
        for number in range(SLOW):
            region = one.regions[number % 8]
            slow.enter_context(stalled(one.node, region, "scan", ARROW))
        before = asyncio.run(crowd(one))
        slow.close()
        one.take_over()
        after = asyncio.run(crowd(one))

    assert before[b"200"] > 0
    assert after[b"200"] > 0
