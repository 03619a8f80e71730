"""Threads that a statement visits: each visit costs more than Arrow's work on a thousand rows."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from metasrv_base.rows.arrow_parts import ArrowParts
from tests.dataplane.frontend.bench import running
from tests.dataplane.frontend.http.requests import stream
from tests.dataplane.frontend.tables import feed_table

ROWS = 1_000


class Counting(ThreadPoolExecutor):
    """An executor that counts what it is handed."""

    calls = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls += 1
        return super().submit(fn, *args, **kwargs)


async def test_given_a_thousand_arrow_rows_when_inserted_then_only_the_disk_has_a_thread() -> None:
    ids = list(range(ROWS))
    rows = pa.RecordBatch.from_pydict({"id": ids, "a": ids, "b": [f"w{id}" for id in ids]})
    made, counting = ArrowParts(rows.schema), Counting(4)
    async with running() as bench:
        asyncio.get_running_loop().set_default_executor(counting)

        done = await stream(bench, [made.part(rows), made.end()])
        visits = counting.calls

    assert (done.status, done.json["rows"]) == (200, ROWS)
    assert visits == 1


async def test_given_rows_for_two_regions_when_inserted_then_they_are_routed_in_a_thread() -> None:
    """The hash of a key is worked out in Python, which the loop must not wait for."""
    ids = list(range(ROWS))
    rows = pa.RecordBatch.from_pydict({"id": ids, "a": ids, "b": [f"w{id}" for id in ids]})
    made, counting = ArrowParts(rows.schema), Counting(4)
    async with running(feed_table(regions=2)) as bench:
        asyncio.get_running_loop().set_default_executor(counting)

        done = await stream(bench, [made.part(rows), made.end()])
        visits = counting.calls

    assert (done.status, done.json["rows"]) == (200, ROWS)
    assert visits > len(bench.table.regions)
