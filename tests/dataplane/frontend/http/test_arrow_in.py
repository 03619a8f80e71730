"""All rows of a request are judged before any is sent, and a fault points to its row."""

import tracemalloc
import weakref
from collections.abc import AsyncIterator, MutableMapping, Sequence
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.http import arrow_in
from dataplane.frontend.http.arrow_in import ArrowIn
from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.write_stream import WriteStream
from metasrv_base.errors import Conflict, Refused
from metasrv_base.rows.arrow_parts import ArrowParts
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.http.requests import stream
from tests.dataplane.frontend.statements.calls import all_rows, write
from tests.dataplane.frontend.tables import A, column, feed_table, index, rule

OK = column(2, "ok", "boolean", nullable=False)
RULED = (A, rule("check", 2, expression="c2 < 100"))
ROWS = "/v1/tables/main/public/t/rows?op=upsert"


def rows_of(ids: Sequence[int], **more: Any) -> list[dict[str, Any]]:
    return [{"id": id, **more} for id in ids]


async def batches_of(bench: Bench, work: Any) -> list[str]:
    """Paths of the batches that reached a region while *work* was awaited."""
    sent: list[str] = []

    async def note(request: httpx.Request) -> None:
        if request.url.path.endswith("/batch"):
            sent.append(request.url.path)

    bench.way.done = note
    await work
    bench.way.done = None
    return sent


@pytest.mark.parametrize("op", [Op.INSERT, Op.UPSERT])
async def test_given_a_null_in_one_region_when_rows_of_three_are_written_then_none_is_applied(
    op: Op,
) -> None:
    async with running(feed_table(OK, regions=3)) as bench:
        rows = rows_of(range(101, 106), ok=True)
        rows[3]["ok"] = None

        with pytest.raises(Refused) as told:
            await write(bench, op, rows)

        assert told.value.facts["pointer"] == "/rows/3/ok"
        assert told.value.facts["rows_applied"] == 0
        assert await all_rows(bench) == []


async def test_given_a_row_that_breaks_a_check_as_it_is_when_updated_then_none_is_applied() -> None:
    """It takes reading: every region is read before the first is written."""
    async with running(feed_table(*RULED, regions=3)) as bench:
        await write(bench, Op.INSERT, rows_of(range(9), a=1))

        with pytest.raises(Refused, match="constraint-violated") as told:
            await write(bench, Op.UPDATE, [*rows_of(range(6), a=2), {"id": 6, "a": 100}])

        assert told.value.facts["pointer"] == "/rows/6"
        assert {row["a"] for row in await all_rows(bench)} == {1}


async def test_given_a_missing_row_when_rows_of_three_regions_are_updated_then_none_is() -> None:
    async with running(feed_table(A, regions=3)) as bench:
        await write(bench, Op.INSERT, rows_of(range(9), a=1))

        with pytest.raises(Conflict, match="row-missing"):
            await write(bench, Op.UPDATE, rows_of(range(10), a=2))

        assert {row["a"] for row in await all_rows(bench)} == {1}


async def test_given_a_key_that_is_there_when_inserted_then_the_rows_applied_are_counted() -> None:
    """Only its region knows; what the others applied is said."""
    async with running(feed_table(A, regions=3)) as bench:
        await write(bench, Op.INSERT, rows_of([4], a=1))

        with pytest.raises(Conflict, match="already-exists") as told:
            await write(bench, Op.INSERT, rows_of(range(9), a=2))

        there = len(await all_rows(bench)) - 1
        assert told.value.facts["rows_applied"] == there > 0


async def test_given_a_stream_when_its_second_batch_is_wrong_then_row_and_count_are_of_it() -> None:
    schema = pa.schema({"id": pa.int64(), "ok": pa.bool_()})
    good = pa.RecordBatch.from_pylist(rows_of(range(5), ok=True), schema)
    bad = pa.RecordBatch.from_pylist([*rows_of([5, 6], ok=True), {"id": 7, "ok": None}], schema)
    made = ArrowParts(schema)

    async with running(feed_table(OK, regions=3)) as bench:
        told = await stream(bench, [made.part(good), made.part(bad), made.end()], ROWS)
        there = len(await all_rows(bench))

    assert told.status == 422
    assert told.json["facts"]["pointer"] == "/rows/7/ok"
    assert (told.json["facts"]["rows_applied"], there) == (5, 5)


async def test_given_a_batch_that_was_read_when_the_next_is_awaited_then_its_bytes_are_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without threads: one that has answered frees what it was given a moment later."""
    monkeypatch.setattr(arrow_in, "is_short_columnar", lambda rows, size_bytes: True)
    schema = pa.schema({"id": pa.int64()})
    made = ArrowParts(schema)
    large, size = pa.RecordBatch.from_pydict({"id": range(1 << 17)}, schema), 1 << 20
    parts, kept = iter([made.part(large), made.part(large), made.end()]), list[int]()

    async def receive() -> MutableMapping[str, Any]:
        kept.append(tracemalloc.get_traced_memory()[0])
        return {"type": "http.request", "body": next(parts), "more_body": True}

    tracemalloc.start()
    try:
        async for batch in ArrowIn(receive, lambda: 60.0).batches():
            assert batch.nbytes == size
            del batch
    finally:
        tracemalloc.stop()

    assert max(kept[1:]) < size // 2


async def test_given_a_batch_that_was_written_when_the_next_is_awaited_then_it_is_not_kept() -> (
    None
):
    kept = list[object]()

    async def come(left_s: object) -> AsyncIterator[pa.RecordBatch]:
        for id in range(2):
            made = [pa.RecordBatch.from_pylist(rows_of([id], a=1))]
            batch = weakref.ref(made[0])
            yield made.pop()
            kept.append(batch())

    async with running(feed_table(A)) as bench:
        done = await WriteStream(bench.service.writes, Op.INSERT, "a").run(T, come)

    assert (done.rows, kept) == (2, [None, None])


async def test_given_unique_values_twice_when_of_one_region_then_nothing_is_sent() -> None:
    async with running(feed_table(A, index(1, 2, unique=True), regions=1)) as bench:

        async def insert() -> None:
            with pytest.raises(Conflict, match="index-not-unique"):
                await write(bench, Op.INSERT, [{"id": 1, "a": 5}, {"id": 2, "a": 5}])

        sent = await batches_of(bench, insert())

        assert len(sent) == 1, "one question: was an earlier copy applied?"
        assert await all_rows(bench) == []
