"""A table that is being dropped: who has found it goes on with it, and nobody else finds it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.scans import Place
from dataplane.frontend.statements.write_stream import WriteStream
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import NotFound
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.statements.calls import (
    ROWS,
    all_rows,
    hearing,
    row,
    rows_of,
    write,
    write_while,
)
from tests.dataplane.frontend.tables import TABLE_ID

Act = Callable[[Bench], Awaitable[None]]
STAGES = ("before", "hidden", "back")
CHANGES: Mapping[str, tuple[Op, dict[str, Any], dict[str, Any] | None]] = {
    "updated": (Op.UPDATE, {"a": 2}, {"a": 2, "b": "x"}),
    "put anew": (Op.UPSERT, {"a": 3}, {"a": 3, "b": None}),
    "deleted": (Op.DELETE, {}, None),
}
"""The statement about a row, its fields, and the row after it."""
CELLS = [(i, j, change) for i in STAGES for j in STAGES[STAGES.index(i) :] for change in CHANGES]


async def hide(bench: Bench) -> None:
    bench.tell(bench.table.model_copy(update={"state": ElementState.WRITE_ONLY}))


async def show(bench: Bench) -> None:
    bench.tell(bench.table.model_copy(update={"state": ElementState.PUBLIC}))


async def nobody_finds_it(bench: Bench) -> None:
    async with hearing(bench):
        asks: list[Callable[[], Awaitable[object]]] = [
            lambda: write(bench, Op.INSERT, ROWS),
            lambda: row(bench, 0),
            lambda: all_rows(bench),
            lambda: bench.service.scans.begin_rows(TABLE_ID, None),
        ]
        for ask in asks:
            with pytest.raises(NotFound, match="table-not-found"):
                await ask()


@pytest.mark.case("online 61")
async def test_given_rows_of_any_stage_of_a_drop_when_changed_in_a_later_one_then_they_hold() -> (
    None
):
    """The DML matrix of a table that goes, and is given back: while it is hidden, only those write
    who had found it."""
    async with running() as bench:
        for stage in STAGES:
            after = hide if stage == "hidden" else show
            for id, (i, j, change) in enumerate(CELLS):
                op, said, _ = CHANGES[change]
                if i == stage:
                    await under_way(bench, after, Op.INSERT, {"id": id, "a": 1, "b": "x"})
                if j == stage:
                    await under_way(bench, after, op, {"id": id, **said})
            if stage == "hidden":
                await nobody_finds_it(bench)
                await show(bench)

        ends = [CHANGES[change][2] for _, _, change in CELLS]
        assert await all_rows(bench) == [
            {"id": id, **end} for id, end in enumerate(ends) if end is not None
        ]
        assert bench.transactions.pins(0) == ()


async def under_way(bench: Bench, meanwhile: Act, op: Op, changed: dict[str, Any]) -> None:
    """It finds the table, and *meanwhile* happens before its batch has reached the region."""
    await show(bench)
    assert await write_while(bench, lambda: meanwhile(bench), op, changed) == 1


@pytest.mark.case("online 61")
@pytest.mark.case("catalog 142")
async def test_given_a_scan_and_a_stream_when_their_table_is_hidden_then_they_end_with_it() -> None:
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        page, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        async def batches(left_s: Callable[[], float]) -> Any:
            yield batch(60)
            await hide(bench)
            yield batch(61)

        written = await WriteStream(bench.service.writes, Op.INSERT, "s-1").run(T, batches)
        current = bench.service.scans.current(opened)
        rest, _ = await bench.service.scans.page(current, place, 100)
        pins = bench.transactions.pins(0)

        assert (written.rows, written.schema_version, pins) == (2, 1, ())
        assert [one["id"] for one in rows_of(page) + rows_of(rest)] == [
            *(one["id"] for one in ROWS),
            60,
            61,
        ]
        await nobody_finds_it(bench)


def batch(id: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": id, "a": 1, "b": "s"}])


@pytest.mark.case("online 61")
async def test_given_a_scan_when_its_table_is_hidden_and_then_gone_then_it_ends_not_found() -> None:
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        _, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None
        sent: list[httpx.Request] = []

        async def meet(request: httpx.Request) -> None:
            sent.append(request)

        await hide(bench)
        await bench.drop()
        bench.way.meet = meet
        with pytest.raises(NotFound, match="table-not-found"):
            await bench.service.scans.page(bench.service.scans.current(opened), place, 1)

        assert sent == []
        assert bench.transactions.pins(0) == ()
