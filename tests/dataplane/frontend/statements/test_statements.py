"""Statements of a frontend on a real datanode: written, read, finished under a newer schema."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pyarrow as pa
import pytest

from dataplane.frontend.planning.row_input import Op
from dataplane.frontend.statements.regions import CallBudget
from dataplane.frontend.statements.scans import Place
from dataplane.frontend.statements.write_stream import WriteStream
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, NotFound, Refused, Unavailable
from metasrv_base.rows import retry
from metasrv_base.wire.api.tables import RegionRouteBody
from metasrv_base.wire.frontend.feed import FeedTable
from tests.dataplane.frontend.bench import AGE_MAX_MS, LEASE_MS, T, running
from tests.dataplane.frontend.statements.calls import ROWS, all_rows, indexed, outcomes, row, write
from tests.dataplane.frontend.tables import A, B, column, feed_table, index, schema_of

DELETE_ONLY, WRITE_ONLY = ElementState.DELETE_ONLY, ElementState.WRITE_ONLY
PAUSE_MS = 600_000
"""A pause that no test waits for."""
INDEXED = (A, B, index(1, 2), index(2, 3, unique=True))


async def test_given_rows_of_several_regions_when_written_then_every_read_finds_them() -> None:
    async with running(feed_table(regions=3)) as bench:
        await write(bench, Op.INSERT, ROWS)
        await write(bench, Op.UPDATE, [{"id": 3, "a": 30}])
        await write(bench, Op.DELETE, [{"id": 4}, {"id": 44}])
        wanted = [{**one, "a": 30} if one["id"] == 3 else one for one in ROWS if one["id"] != 4]

        assert await all_rows(bench) == await all_rows(bench, limit=2) == wanted
        assert await row(bench, 3) == [wanted[3]]
        assert await row(bench, 4) == []
        assert bench.transactions.pins(0) == ()


async def test_given_an_index_when_read_through_it_then_it_is_what_a_scan_finds() -> None:
    async with running(feed_table(*INDEXED, regions=3)) as bench:
        await write(bench, Op.INSERT, ROWS)
        await write(bench, Op.UPDATE, [{"id": 1, "a": 2}, {"id": 2, "b": "w0x"}])
        await write(bench, Op.UPSERT, [{"id": 5, "b": None}, {"id": 6, "a": 0, "b": "w6"}])
        await write(bench, Op.DELETE, [{"id": 0}])
        rows = await all_rows(bench)

        found = {value: await indexed(bench, "by_2", 2, eq=[value]) for value in ("0", "1", "2")}
        for value, some in found.items():
            same = [one for one in rows if one["a"] == int(value)]
            assert sorted(some, key=lambda one: int(one["id"])) == same
        assert await indexed(bench, "by_2", eq=["null"]) == [
            one for one in rows if one["a"] is None
        ]
        some = await indexed(bench, "by_3", 2, **{"from": ["w1"], "to": ["w6"]})
        assert some == sorted(
            (one for one in rows if one["b"] and "w1" <= one["b"] < "w6"), key=lambda one: one["b"]
        )


async def test_given_a_unique_index_when_values_are_exchanged_or_taken_then_it_stays_one_each() -> (
    None
):
    async with running(feed_table(*INDEXED)) as bench:
        await write(bench, Op.INSERT, ROWS)

        await write(bench, Op.UPDATE, [{"id": 0, "b": "w1"}, {"id": 1, "b": "w0"}])
        for op, bad in (
            (Op.INSERT, {"id": 20, "b": "w2"}),
            (Op.UPSERT, {"id": 21, "b": "w2"}),
            (Op.UPDATE, {"id": 3, "b": "w2"}),
        ):
            with pytest.raises(Conflict, match="index-not-unique") as told:
                await write(bench, op, [bad])
            assert told.value.facts["keys"] == [{"id": bad["id"]}]
            assert outcomes(told.value) == ["not-applied"]

        assert [one["id"] for one in await indexed(bench, "by_3", eq=["w0"])] == [1]
        assert [one["id"] for one in await indexed(bench, "by_3", eq=["w1"])] == [0]
        assert len(await indexed(bench, "by_3")) == len(ROWS)


async def test_given_a_row_that_changes_meanwhile_when_updated_then_it_is_planned_again() -> None:
    async with running(feed_table(*INDEXED)) as bench:
        await write(bench, Op.INSERT, ROWS)

        async def meet(request: httpx.Request) -> None:
            if request.url.path.endswith("/batch"):
                bench.way.meet = None
                await write(bench, Op.UPDATE, [{"id": 1, "a": 7}])

        bench.way.meet = meet
        await write(bench, Op.UPDATE, [{"id": 1, "b": "mine"}])

        assert await row(bench, 1) == [{"id": 1, "a": 7, "b": "mine"}]
        assert [one["id"] for one in await indexed(bench, "by_2", eq=["7"])] == [1]


async def test_given_an_insert_that_exists_when_written_then_the_row_is_named() -> None:
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:1])

        with pytest.raises(Conflict, match="already-exists") as told:
            await write(bench, Op.INSERT, [{**ROWS[0], "a": 5}])

        assert told.value.facts["keys"] == [{"id": 0}]
        assert await all_rows(bench) == ROWS[:1]


def second(*elements: Any) -> FeedTable:
    return feed_table(*elements, schema_version=2)


@pytest.mark.case("catalog 144")
async def test_given_a_floor_that_rose_when_statements_run_then_they_end_under_the_new() -> None:
    later = second(A, B, column(4, "c", state=WRITE_ONLY, default=5, origin_default=5))
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:1])
        await bench.raise_floor(later, 2)
        asked = asyncio.Event()

        async def meet(request: httpx.Request) -> None:
            asked.set()

        bench.way.meet = meet
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(write(bench, Op.UPSERT, ROWS[:2]))
            reading = group.create_task(row(bench, 0))
            await asked.wait()
            pins = bench.transactions.pins(bench.clock.mono_ms())
            bench.tell(later)

        assert (pins[0].schema_version, pins[0].table_id) == (1, 1024)
        assert writing.result() == 2
        assert reading.result() == ROWS[:1]
        assert await all_rows(bench) == ROWS[:2], "a column on its way in is not seen"
        assert bench.transactions.pins(0) == ()


@pytest.mark.case("catalog 143")
async def test_given_rows_that_fit_the_new_schema_no_more_when_written_then_it_is_stale() -> None:
    async with running() as bench:
        later = second(A)
        await bench.raise_floor(later, 2)

        async def meet(request: httpx.Request) -> None:
            bench.way.meet = None
            bench.tell(later)

        bench.way.meet = meet
        with pytest.raises(Conflict, match="schema-version-stale") as told:
            await write(bench, Op.INSERT, ROWS[:1])

        assert outcomes(told.value) == ["not-applied"]
        assert await all_rows(bench) == []


async def test_given_a_column_that_leaves_when_old_clients_write_then_nothing_of_it_is_lost() -> (
    None
):
    leaving = B.model_copy(update={"state": WRITE_ONLY})
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:2])
        await bench.publish(second(A, leaving))

        await write(bench, Op.UPSERT, [{"id": 0, "a": 9}])
        await write(bench, Op.UPDATE, [{"id": 1, "a": 9}])
        seen = await all_rows(bench)
        with pytest.raises(Refused):
            await write(bench, Op.UPDATE, [{"id": 1, "b": "x"}])
        await bench.publish(feed_table(A, B, schema_version=3))

        assert seen == [{"id": 0, "a": 9}, {"id": 1, "a": 9}]
        assert await all_rows(bench) == [{**one, "a": 9} for one in ROWS[:2]]


async def test_given_an_index_on_its_way_when_rows_are_written_then_it_has_them_once_public() -> (
    None
):
    async with running() as bench:
        for state, number in ((DELETE_ONLY, 2), (WRITE_ONLY, 3)):
            coming = feed_table(A, B, index(1, 2, state=state), schema_version=number)
            await bench.publish(coming)
            with pytest.raises(NotFound):
                await indexed(bench, "by_2")
        await write(bench, Op.INSERT, ROWS)
        await bench.publish(feed_table(A, B, index(1, 2), schema_version=4))

        assert len(await indexed(bench, "by_2")) == len(ROWS)


@pytest.mark.case("online 19")
async def test_given_a_scan_when_its_pages_are_fetched_then_it_is_pinned_until_it_is_too_old() -> (
    None
):
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, ["id"])
        page, _ = await bench.service.scans.page(opened, Place(), 2)
        token = page.next_page_token
        assert token is not None
        pinned = bench.transactions.pins(bench.clock.mono_ms())
        bench.clock.advance(AGE_MAX_MS)

        again, place = bench.service.scans.resume(token)
        with pytest.raises(Conflict, match="transaction-too-old"):
            await bench.service.scans.page(again, place, 2)
        with pytest.raises(Refused, match="page-token-expired"):
            bench.service.scans.resume(token)

        assert [one.transaction for one in pinned] == [opened.transaction.id]
        assert bench.transactions.pins(0) == ()


async def test_given_a_scan_that_nobody_goes_on_with_when_it_is_too_old_then_it_is_let_go() -> None:
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS)
        opened = await bench.service.scans.begin_rows(T, None)
        await bench.service.scans.page(opened, Place(), 2)
        bench.service.scans.end_old()
        assert len(bench.transactions) == 1

        bench.clock.advance(AGE_MAX_MS)
        bench.service.scans.end_old()

        assert len(bench.transactions) == 0


async def test_given_a_lease_that_ended_when_asked_then_nothing_is_answered() -> None:
    async with running() as bench:
        await write(bench, Op.INSERT, ROWS[:1])

        async def meet(request: httpx.Request) -> None:
            bench.clock.advance(LEASE_MS)

        bench.way.meet = meet
        with pytest.raises(Unavailable, match="schema lease"):
            await row(bench, 0)
        bench.way.meet = None
        bench.register()
        for ask in (write(bench, Op.INSERT, ROWS[1:]), row(bench, 0), all_rows(bench)):
            with pytest.raises(Unavailable, match="schema lease"):
                await ask

        assert bench.holder.is_over, "what has ended has ended"


async def test_given_batches_of_a_stream_when_one_conflicts_then_those_before_are_told() -> None:
    def batches(*tables: list[dict[str, Any]]) -> Any:
        async def come(left_s: object) -> Any:
            for rows in tables:
                yield pa.RecordBatch.from_pylist(rows)

        return come

    async with running(feed_table(regions=2)) as bench:
        done = await WriteStream(bench.service.writes, Op.INSERT, "a").run(
            T, batches(ROWS[:3], ROWS[3:5])
        )
        with pytest.raises(Conflict, match="already-exists") as told:
            await WriteStream(bench.service.writes, Op.INSERT, "b").run(
                T, batches(ROWS[5:7], ROWS[:1])
            )

        assert (done.rows, len(done.regions)) == (5, 2)
        assert told.value.facts["rows_applied"] == 2
        assert await all_rows(bench) == ROWS[:7]


async def test_given_a_stream_that_is_too_slow_when_time_is_up_then_it_is_too_old() -> None:
    async def come(left_s: Callable[[], float]) -> AsyncIterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pylist(ROWS[:3])
        bench.clock.advance(AGE_MAX_MS)
        async with asyncio.timeout(left_s()):
            await asyncio.Event().wait()

    async with running() as bench:
        with pytest.raises(Conflict, match="transaction-too-old") as told:
            await WriteStream(bench.service.writes, Op.INSERT, "a").run(T, come)

        assert told.value.facts["rows_applied"] == 3
        assert await all_rows(bench) == ROWS[:3]


async def test_given_a_statement_id_when_it_comes_again_then_it_is_done_once() -> None:
    async with running() as bench:
        first = await bench.service.writes.rows(T, Op.INSERT, ROWS[:2], "same")
        again = await bench.service.writes.rows(T, Op.INSERT, ROWS[:2], "same")

        assert [one.version for one in again.regions] == [one.version for one in first.regions]
        assert {one.repeated for one in again.regions} == {True}
        assert (again.rows, first.rows) == (2, 2)


async def test_given_a_delete_of_a_missing_row_when_it_comes_again_then_what_came_since_stays() -> (
    None
):
    async with running(feed_table(*INDEXED)) as bench:
        await bench.service.writes.rows(T, Op.DELETE, [{"id": ROWS[0]["id"]}], "same")
        await write(bench, Op.INSERT, ROWS[:1])

        again = await bench.service.writes.rows(T, Op.DELETE, [{"id": ROWS[0]["id"]}], "same")

        assert {one.repeated for one in again.regions} == {True}
        assert await all_rows(bench) == ROWS[:1]


async def test_given_a_region_that_no_node_has_when_time_is_up_then_it_is_not_there_yet() -> None:
    """The catalog has the table: a node that starts again has its regions a little later."""

    async def nowhere(region: RegionRouteBody) -> None:
        raise NotFound(what="region", name=region.region_id)

    async with running() as bench:
        now = CallBudget("s", asyncio.get_running_loop().time())

        with pytest.raises(Unavailable, match="not-ready"):
            await bench.service.reads.regions._until_final(bench.catalog.named(T), 0, now, nowhere)
        await bench.drop()
        with pytest.raises(NotFound, match="table-not-found"):
            await bench.service.reads.regions._until_final(schema_of(A), 0, now, nowhere)


async def test_given_a_node_behind_the_route_when_it_refuses_then_it_is_asked_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "REGION_BACKOFF", Backoff(PAUSE_MS, PAUSE_MS))
    attempts = list[int]()

    async def behind(region: RegionRouteBody) -> None:
        assert not attempts, "it is asked again at once"
        attempts.append(region.epoch)
        raise Conflict("stale-epoch", epoch=region.epoch - 1, found=region.epoch)

    async with running() as bench:
        call = CallBudget("s", asyncio.get_running_loop().time() + 2 * PAUSE_MS)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await bench.service.reads.regions._until_final(schema_of(A), 0, call, behind)

    assert len(attempts) == 1


async def test_given_a_route_behind_its_node_when_the_next_comes_then_no_pause_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retry, "REGION_BACKOFF", Backoff(PAUSE_MS, PAUSE_MS))
    async with running() as bench:
        regions = [each.model_copy(update={"epoch": 2}) for each in bench.table.regions]
        led_by_another = bench.table.model_copy(update={"regions": tuple(regions)})

        async def ahead(region: RegionRouteBody) -> int:
            if region.epoch < 2:
                asyncio.get_running_loop().call_soon(bench.tell, led_by_another)
                raise Conflict("stale-epoch", epoch=2, found=region.epoch)
            return region.epoch

        call = CallBudget("s", asyncio.get_running_loop().time() + 2 * PAUSE_MS)
        async with asyncio.timeout(30):
            told = await bench.service.reads.regions._until_final(schema_of(A), 0, call, ahead)

    assert told == 2
