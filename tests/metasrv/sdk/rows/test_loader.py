"""A load keeps nothing of batches that were written, however long the next is on its way."""

import asyncio
import threading
import weakref
from collections.abc import Iterator
from typing import cast

import pyarrow as pa

from metasrv.sdk.rows.binding import Bound
from metasrv.sdk.rows.loader import Load, LoadPlan
from metasrv.sdk.rows.rows_query import Op
from metasrv.sdk.rows.via_frontend import Through
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.outcome import RegionOutcome
from metasrv_base.rows.split import RegionPart
from metasrv_base.rows.statement_ids import StatementKey

LIMIT_S = 30
Kept = weakref.ref[pa.RecordBatch]


class OneRegion:
    """Frontends that apply every batch at once, all rows in region 1 of a table without layout."""

    layout = None
    regions = (1,)

    def __init__(self) -> None:
        self.made = list[Kept]()
        """The rows of each part."""
        self.written = threading.Event()

    def parts(self, _: Layout, rows: pa.RecordBatch, __: Op, ___: int) -> list[RegionPart]:
        part = RegionPart(1, pa.RecordBatch.from_pylist(rows.to_pylist()))
        self.made.append(weakref.ref(part.rows))
        return [part]

    async def put(self, _: Bound, part: RegionPart, __: Op, ___: StatementKey) -> RegionOutcome:
        self.written.set()
        return RegionOutcome("1", "applied", part.rows.num_rows)


async def test_given_a_batch_that_was_written_when_the_next_is_read_then_it_is_not_kept() -> None:
    table, loop, kept = OneRegion(), asyncio.get_running_loop(), list[list[bool]]()

    async def look(source_rows: Kept) -> None:
        """Runs on the loop, where the region waits for the next batch by now."""
        kept.append([rows() is not None for rows in (source_rows, *table.made)])

    def source() -> Iterator[pa.RecordBatch]:
        made = [pa.RecordBatch.from_pylist([{"id": 1}])]
        source_rows = weakref.ref(made[0])
        yield made.pop()
        assert table.written.wait(LIMIT_S)
        asyncio.run_coroutine_threadsafe(look(source_rows), loop).result(LIMIT_S)
        yield pa.RecordBatch.from_pylist([{"id": 2}])

    new_key = cast(StatementKey, None)
    plan = LoadPlan("insert", 1, cast(Through, table), lambda: new_key, None)
    result = await Load(cast(Bound, table), plan).run(source())

    assert (result.rows, kept) == (2, [[False, False]])
