"""A statement that comes again is answered by what it did the first time, whatever came since."""

from typing import Any

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.writes import WriteOutcome
from metasrv_base.errors import Conflict
from tests.dataplane.frontend.bench import Bench, T, running
from tests.dataplane.frontend.tables import A, B, feed_table, index

UNIQUE = (A, B, index(1, 3, unique=True))
ROWS: list[dict[str, Any]] = [{"id": number, "a": 0, "b": f"w{number}"} for number in range(3)]


async def write(bench: Bench, op: Op, rows: list[dict[str, Any]], id: str) -> WriteOutcome:
    return await bench.service.writes.rows(T, op, rows, id)


def batches_met(bench: Bench) -> list[str]:
    """Collects the batches that go to the node from now on, in order of arrival."""
    met = []

    async def meet(request: httpx.Request) -> None:
        if request.url.path.endswith("/batch"):
            met.append(request.url.path)

    bench.way.meet = meet
    return met


async def test_given_an_update_when_its_row_is_gone_since_then_a_copy_is_told_of_it() -> None:
    async with running(feed_table(regions=3)) as bench:
        await write(bench, Op.INSERT, ROWS, "first")
        changed = [{"id": one["id"], "a": 7} for one in ROWS]
        done = await write(bench, Op.UPDATE, changed, "changed")
        await write(bench, Op.DELETE, [{"id": one["id"]} for one in ROWS], "gone")

        again = await write(bench, Op.UPDATE, changed, "changed")

        assert again.rows == done.rows == 3
        assert [one.version for one in again.regions] == [one.version for one in done.regions]
        assert {one.repeated for one in again.regions} == {True}


async def test_given_a_value_that_another_row_has_since_then_a_copy_is_told_of_it() -> None:
    async with running(feed_table(*UNIQUE)) as bench:
        await write(bench, Op.UPSERT, ROWS[:1], "mine")
        await write(bench, Op.DELETE, [{"id": 0}], "gone")
        await write(bench, Op.INSERT, [{"id": 9, "b": "w0"}], "theirs")

        again = await write(bench, Op.UPSERT, ROWS[:1], "mine")
        with pytest.raises(Conflict, match="index-not-unique"):
            await write(bench, Op.UPSERT, ROWS[:1], "new")

        assert {one.repeated for one in again.regions} == {True}


async def test_given_an_update_that_found_no_row_when_there_is_one_then_a_copy_does_it() -> None:
    """Nothing remembers a statement that did nothing."""
    async with running() as bench:
        met = batches_met(bench)
        with pytest.raises(Conflict, match="row-missing"):
            await write(bench, Op.UPDATE, [{"id": 0, "a": 7}], "changed")
        asked = len(met)
        await write(bench, Op.INSERT, ROWS[:1], "first")

        done = await write(bench, Op.UPDATE, [{"id": 0, "a": 7}], "changed")

        assert asked == 1
        assert {one.repeated for one in done.regions} == {False}
