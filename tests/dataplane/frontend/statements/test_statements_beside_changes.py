"""Statements that are under way when their table changes, is renamed, dropped or made anew."""

import asyncio

import httpx
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.scans import Place
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, NotFound, Refused
from tests.dataplane.frontend.bench import T, running
from tests.dataplane.frontend.statements.calls import (
    ROWS,
    all_rows,
    hearing,
    indexed,
    outcomes,
    row,
    rows_of,
    write,
    write_while,
)
from tests.dataplane.frontend.tables import TABLE_ID, A, B, feed_table, index

LEAVING = B.model_copy(update={"state": ElementState.WRITE_ONLY})
RENAMED = B.model_copy(update={"name": "c"})


@pytest.mark.case("online 17")
@pytest.mark.case("catalog 143")
async def test_given_transactions_that_began_when_a_version_comes_then_they_end_with_theirs() -> (
    None
):
    later = feed_table(A, LEAVING, schema_version=2)
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:3])
        opened = await bench.service.scans.begin_rows(T, None)
        _, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        mine = {"id": 1, "b": "mine"}
        written = await write_while(bench, lambda: bench.publish(later), Op.UPDATE, mine)
        following = await write(bench, Op.UPDATE, [{"id": 2, "a": 7}])
        pins = bench.transactions.pins(bench.clock.mono_ms())
        rest, _ = await bench.service.scans.page(bench.service.scans.current(opened), place, 10)

        assert (written, following, rest.schema_version) == (1, 2, 1)
        assert rows_of(rest) == [{**ROWS[1], "b": "mine"}, {**ROWS[2], "a": 7}]
        assert [(pin.schema_version, pin.transaction) for pin in pins] == [
            (1, opened.transaction.id)
        ]
        assert await row(bench, 1) == [{"id": 1, "a": 1}], "what begins now has the next version"
        with pytest.raises(Refused):
            await write(bench, Op.UPDATE, [mine])


@pytest.mark.case("online 22")
async def test_given_a_change_that_waits_for_a_scan_when_others_come_then_none_of_them_waits() -> (
    None
):
    elements = (index(1, 2), index(2, 3, unique=True))
    async with running(feed_table(A, B, *elements)) as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        await bench.service.scans.page(opened, Place(), 1)
        await bench.publish(feed_table(A, LEAVING, *elements[:1], schema_version=2))

        await write(bench, Op.DELETE, [{"id": 0}])
        shown = [{name: one[name] for name in ("id", "a")} for one in ROWS[1:]]
        assert await row(bench, 1) == shown[:1]
        assert await all_rows(bench) == shown
        assert [one["id"] for one in await indexed(bench, "by_2", eq=["1"])] == [1, 4, 7]
        (pin,) = bench.transactions.pins(bench.clock.mono_ms())
        assert (pin.schema_version, pin.transaction) == (1, opened.transaction.id)


@pytest.mark.case("online 53")
async def test_given_a_column_that_is_renamed_when_its_old_name_is_used_then_a_definite_error() -> (
    None
):
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:2])

        async def rename() -> None:
            bench.tell(feed_table(A, RENAMED))

        mine = {"id": 0, "b": "mine"}
        assert await write_while(bench, rename, Op.UPDATE, mine) == 1, "it began before"
        with pytest.raises(Refused, match="invalid-request"):
            await write(bench, Op.UPDATE, [{"id": 0, "b": "late"}])
        with pytest.raises(Refused, match="invalid-request"):
            await bench.service.scans.begin_rows(T, ["b"])

        assert await row(bench, 0) == [{"id": 0, "a": 0, "c": "mine"}]
        assert bench.transactions.pins(0) == ()


@pytest.mark.case("online 53")
@pytest.mark.case("catalog 141")
async def test_given_a_column_that_is_renamed_when_old_versions_end_then_its_users_are_stale() -> (
    None
):
    later = feed_table(A, RENAMED, schema_version=2)
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:2])
        opened = await bench.service.scans.begin_rows(T, ["id", "b"])
        _, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        async def rename() -> None:
            await bench.raise_floor(later, 2)
            bench.tell(later)

        with pytest.raises(Conflict, match="schema-version-stale") as told:
            await write_while(bench, rename, Op.UPDATE, {"id": 0, "b": "mine"})
        bench.transactions.age_max_ms = 3_600_000  # so that who waits for a version 3 is seen
        async with asyncio.timeout(240):
            with pytest.raises(Conflict, match="schema-version-stale"):
                await bench.service.scans.page(bench.service.scans.current(opened), place, 1)

        assert outcomes(told.value) == ["not-applied"]
        assert await row(bench, 0) == [{"id": 0, "a": 0, "c": "w0"}]
        assert bench.transactions.pins(0) == ()


@pytest.mark.case("online 53")
async def test_given_a_table_that_is_renamed_when_its_old_name_is_used_then_it_is_not_found() -> (
    None
):
    async with running() as bench, hearing(bench):
        await write(bench, Op.INSERT, ROWS[:2])
        opened = await bench.service.scans.begin_rows(T, None)
        _, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        async def rename() -> None:
            bench.tell(feed_table().model_copy(update={"name": "u"}))

        await write_while(bench, rename, Op.UPDATE, {"id": 1, "a": 7})
        rest, _ = await bench.service.scans.page(bench.service.scans.current(opened), place, 10)
        for ask in (write(bench, Op.INSERT, ROWS[2:]), row(bench, 0), all_rows(bench)):
            with pytest.raises(NotFound, match="table-not-found"):
                await ask

        assert rows_of(rest) == [{**ROWS[1], "a": 7}], "who began before goes on"
        found = await bench.service.scans.begin_rows(("main", "public", "u"), ["id"])
        page, _ = await bench.service.scans.page(found, Place(), 10)
        assert rows_of(page) == [{"id": 0}, {"id": 1}]


@pytest.mark.case("online 61")
@pytest.mark.case("catalog 142")
async def test_given_a_table_that_is_gone_when_statements_come_then_none_of_them_reaches_it() -> (
    None
):
    async with running() as bench, hearing(bench):
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        _, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        with pytest.raises(NotFound, match="table-not-found"):
            await write_while(bench, bench.drop, Op.UPDATE, {"id": 1, "a": 7})
        sent: list[httpx.Request] = []

        async def meet(request: httpx.Request) -> None:
            sent.append(request)

        bench.way.meet = meet
        current = bench.service.scans.current(opened)
        for ask in (
            write(bench, Op.INSERT, ROWS),
            row(bench, 0),
            all_rows(bench),
            bench.service.scans.page(current, place, 1),
        ):
            with pytest.raises(NotFound, match="table-not-found"):
                await ask

        assert sent == []
        assert bench.transactions.pins(0) == ()


@pytest.mark.case("online 63")
async def test_given_a_table_that_is_dropped_and_made_anew_then_no_statement_sees_an_old_row() -> (
    None
):
    async with running(feed_table(A, B, index(1, 2), regions=2)) as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        page, place = await bench.service.scans.page(opened, Place(), 1)
        assert place is not None

        async def make_anew() -> None:
            await bench.drop()
            await bench.make(feed_table(A, B, index(1, 2), regions=2, id=TABLE_ID + 1))

        with pytest.raises(NotFound, match="table-not-found"):
            await write_while(bench, make_anew, Op.UPDATE, {"id": 1, "a": 7})
        with pytest.raises(NotFound, match="table-not-found"):
            await bench.service.scans.page(bench.service.scans.current(opened), place, 10)

        assert len(rows_of(page)) == 1
        assert await all_rows(bench) == await indexed(bench, "by_2") == await row(bench, 1) == []
        await write(bench, Op.UPSERT, [{"id": 1, "b": "new"}])
        new = [{"id": 1, "a": None, "b": "new"}]
        assert await all_rows(bench) == await indexed(bench, "by_2") == new
