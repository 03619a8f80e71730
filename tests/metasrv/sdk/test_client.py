"""The SDK through frontends: tables with indexes, and statements that are done once."""

import asyncio

import httpx
import pyarrow as pa
import pytest

from metasrv.sdk.rows.frontends import MARGIN_MS_MAX, TRY_MS
from metasrv_base.errors import Conflict, NotFound, Refused, Unavailable, Unknown
from metasrv_base.wire.problem.problems import problem_of
from tests.dataplane.frontend.tables import rule
from tests.metasrv.sdk.row_samples import ROWS
from tests.metasrv.sdk.scene import ONE, OTHER, body, scene


async def test_given_an_indexed_table_when_used_then_all_goes_through_a_frontend() -> None:
    async with scene() as (frontends, table):
        inserted = await table.insert(ROWS[:4])
        loaded = await table.load(pa.Table.from_pylist(ROWS[4:]), batch_rows=2)
        await table.update([{"id": 3, "a": 30}])
        await table.upsert(pa.RecordBatch.from_pylist([{"id": 2, "a": 20}]))
        deleted = await table.delete([9, 77])
        some = await table.get_many([3, 2, 99])
        found = [row async for page in table.find("by_2", from_=5) for row in page.to_pylist()]
        one = [row async for page in table.find("by_2", eq=30, limit=1) for row in page.to_pylist()]
        scanned = [row async for page in table.scan(["b", "id"], 2, 5) for row in page.to_pylist()]
        whole = await table.to_arrow()
        digest = await table.checksum()

    assert (inserted.rows, loaded.rows, deleted.rows) == (4, 6, 2)
    assert {one.outcome for one in inserted.regions} == {"applied"}
    assert sorted(some, key=str) == [{"id": 2, "a": 20, "b": None}, {"id": 3, "a": 30, "b": "w3"}]
    assert [row["a"] for row in found] == [5, 6, 7, 8, 20, 30]
    assert one == [{"id": 3, "a": 30, "b": "w3"}]
    assert sorted(row["id"] for row in scanned) == [2, 3, 4]
    assert [set(row) for row in scanned[:1]] == [{"id", "b"}]
    assert sorted(whole.column("id").to_pylist()) == list(range(9))
    assert (digest.rows, len(digest.regions)) == (9, 3)
    assert set(frontends.told) <= {"fe-1.test", "fe-2.test"}


async def test_given_a_row_that_breaks_a_rule_when_loaded_then_its_place_is_told() -> None:
    rows = [{**row, "a": None} if row["id"] == 8 else row for row in ROWS]

    async with scene(elements=(rule("not-null", 2),)) as (_, table):
        with pytest.raises(Refused, match="constraint-violated") as told:
            await table.load(pa.Table.from_pylist(rows), batch_rows=2)

    assert told.value.facts["pointer"] == "/rows/8"
    assert "At /rows/8: " in str(problem_of(told.value, "", "")[2]["detail"])
    assert "detail" not in told.value.facts, "which a server said of its part"


@pytest.mark.parametrize("unique", [False, True])
async def test_given_a_lost_answer_when_asked_again_then_it_is_done_once(unique: bool) -> None:
    async with scene(unique=unique) as (frontends, table):
        frontends.faults = [("after", httpx.ReadTimeout("lost"))]
        done = await table.insert(ROWS[:5])
        rows = await table.count()

    assert (done.rows, rows) == (5, 5)
    assert all(one.repeated for one in done.regions)
    assert len(set(frontends.told[:2])) == 2, "the other one was asked"


async def test_given_a_statement_id_when_it_comes_again_then_it_is_done_once() -> None:
    async with scene() as (_, table):
        await table.insert(ROWS[:2], statement_id="mine")
        again = await table.insert(ROWS[:2], statement_id="mine")
        with pytest.raises(Conflict) as other:
            await table.insert(ROWS[:2], statement_id="another")

    assert all(one.repeated for one in again.regions)
    assert {key["id"] for key in other.value.facts["keys"]} <= {0, 1}  # type: ignore[attr-defined]


async def test_given_a_frontend_that_is_gone_then_another_is_asked() -> None:
    async with scene() as (frontends, table):
        frontends.faults = [("before", httpx.ConnectError("gone"))] * 3
        await table.insert(ROWS[:1])
        rows = await table.count()

    assert rows == 1
    assert set(frontends.told) == {"fe-1.test", "fe-2.test"}


async def test_given_two_frontends_when_used_by_one_client_then_each_is_asked_as_often() -> None:
    async with scene() as (frontends, table):
        for row in ROWS:
            await table.insert([row])

    assert {frontends.told.count(one) for one in ("fe-1.test", "fe-2.test")} == {len(ROWS) // 2}


async def test_given_many_statements_at_once_then_no_frontend_has_more_than_its_share() -> None:
    async with scene() as (frontends, table), asyncio.TaskGroup() as group:
        await table.count()
        frontends.told.clear()
        for row in ROWS:
            group.create_task(table.insert([row]))

    assert {frontends.told.count(one) for one in ("fe-1.test", "fe-2.test")} == {len(ROWS) // 2}


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_given_a_new_client_of_many_tasks_then_all_wait_for_the_first_word_of_frontends(
    is_cancelled: bool,
) -> None:
    async with scene() as (frontends, table), asyncio.TaskGroup() as group:
        frontends.held = asyncio.Event()
        first = group.create_task(table.insert(ROWS[:1]))
        await asyncio.sleep(0)
        for row in ROWS[1:]:
            group.create_task(table.insert([row]))
        await asyncio.sleep(0)
        if is_cancelled:
            first.cancel()
        frontends.held.set()

    assert len(frontends.told) == len(ROWS) - is_cancelled, "nodes alone take no row of an index"


async def test_given_a_schema_that_one_frontend_has_shown_then_it_is_asked_of_the_others() -> None:
    async with scene() as (frontends, table):
        await table.insert(ROWS[:1])
        bench = frontends.bench
        assert bench is not None
        await bench.publish(bench.table.model_copy(update={"schema_version": 2}))
        await table.get(0)
        await table.get_many([0])

    assert frontends.at_least == ["1", "1", "2"]


async def test_given_all_are_gone_when_others_came_then_they_are_found() -> None:
    async with scene("http://fe-1.test") as (frontends, table):
        await table.insert(ROWS[:1])
        frontends.faults = [("before", httpx.ConnectError("gone"))]
        frontends.lead(OTHER)
        await table.insert(ROWS[1:2])

    assert frontends.told == ["fe-1.test", "fe-1.test", "fe-2.test"]


async def test_given_a_lost_answer_when_refused_afterwards_then_it_is_not_known() -> None:
    async with scene(regions=1) as (frontends, table):
        await table.insert(ROWS[:1], statement_id="first")
        frontends.faults = [("before", httpx.ReadTimeout("lost"))]
        with pytest.raises(Unknown):
            await table.insert(ROWS[:1], statement_id="second")


@pytest.mark.parametrize("is_read_again", [False, True])
async def test_given_a_lost_answer_when_its_column_is_renamed_since_then_it_is_not_known(
    is_read_again: bool,
) -> None:
    """It was applied; what a frontend, or this client itself, says of a copy does not undo that."""
    async with scene(regions=1) as (frontends, table):
        await table.count()
        assert frontends.bench is not None
        bench = frontends.bench

        async def rename(_: httpx.Request) -> None:
            bench.way.done = None
            columns = tuple(
                one.model_copy(update={"name": "c"}) if one.id == 3 else one
                for one in bench.table.columns
            )
            bench.tell(bench.table.model_copy(update={"columns": columns, "version": 2}))
            if is_read_again:
                known = [one.model_dump() for one in body(bench).columns]
                known[2]["name"] = "c"
                frontends.table = body(bench, columns=known, version=2)

        bench.way.done = rename
        frontends.faults = [("after", httpx.ReadTimeout("lost"))]
        with pytest.raises(Unknown) as told:
            await table.insert(ROWS[:1])

        assert told.value.facts["reason"] == "invalid-request"
        assert await table.count() == 1


async def test_given_a_region_that_took_its_rows_when_the_others_do_not_fit_then_it_is_said() -> (
    None
):
    async with scene(regions=2) as (frontends, table):
        await table.count()
        assert frontends.bench is not None
        bench = frontends.bench
        columns = tuple(
            one.model_copy(update={"name": "c"}) if one.id == 3 else one
            for one in bench.table.columns
        )
        changes = {"columns": columns, "version": 2, "schema_version": 2}
        later = bench.table.model_copy(update=changes)
        met: list[str] = []

        async def rename(request: httpx.Request) -> None:
            """Before the second region has its rows."""
            if not request.url.path.endswith("/batch"):
                return
            met.append(request.url.path)
            if len(met) == 2:
                late = [one for one in later.regions if f"/{one.region_id}/" in met[1]]
                await bench.raise_floor(later.model_copy(update={"regions": tuple(late)}), 2)
                bench.tell(later)
                known = [one.model_dump() for one in body(bench).columns]
                known[2]["name"] = "c"
                frontends.table = body(bench, columns=known, version=2, schema_version=2)

        bench.way.meet = rename
        with pytest.raises(Conflict) as told:
            await table.insert(ROWS)

        regions = told.value.facts["regions"]
        assert isinstance(regions, list)
        assert sorted(one["outcome"] for one in regions) == ["applied", "not-applied"]


async def test_given_no_frontend_answers_until_the_deadline_then_nothing_was_done() -> None:
    async with scene() as (frontends, table):
        frontends.faults = [("before", httpx.ConnectError("gone"))] * 500
        with pytest.raises(Unavailable):
            await table.insert(ROWS[:1], deadline_ms=200)


async def test_given_a_renamed_table_or_column_when_used_then_it_is_read_again() -> None:
    async with scene() as (frontends, table):
        await table.insert(ROWS[:1])
        assert frontends.bench is not None
        bench = frontends.bench
        columns = tuple(
            one.model_copy(update={"name": "c"}) if one.id == 3 else one
            for one in bench.table.columns
        )
        changes = {"name": "u", "columns": columns, "version": 2}
        bench.tell(bench.table.model_copy(update=changes))
        known = [one.model_dump() for one in body(bench).columns]
        known[2]["name"] = "c"
        frontends.table = body(bench, columns=known, version=2)
        await table.insert([{"id": 1, "c": "x"}])
        row = await table.get(1)

    assert row == {"id": 1, "a": None, "c": "x"}


async def test_given_a_dropped_table_when_used_then_it_is_not_found() -> None:
    async with scene() as (frontends, table), asyncio.TaskGroup() as group:
        await table.insert(ROWS[:1])
        bench = frontends.bench
        assert bench is not None
        frontends.change(dropped_at="2026-01-01T00:00:00Z")
        await bench.drop()
        holding = group.create_task(bench.holder.run())
        with pytest.raises(NotFound, match="table-not-found"):
            await table.get(1)
        holding.cancel()


async def test_given_what_does_not_fit_then_it_is_refused_and_nothing_is_sent() -> None:
    async with scene() as (frontends, table):
        for rows in ([{"id": "x"}], [{"id": 1, "nope": 1}]):
            with pytest.raises(Refused):
                await table.insert(rows)
        with pytest.raises(Refused, match="same columns"):
            await table.update([{"id": 1, "a": 1}, {"id": 2}])
        with pytest.raises(NotFound):
            await anext(table.find("nope"))

    assert frontends.told == []


async def test_given_no_frontend_then_nothing_is_sent_to_nodes_until_one_is_registered() -> None:
    async with scene() as (frontends, table):
        frontends.lead()
        with pytest.raises(Unavailable, match="none is registered"):
            await table.insert(ROWS[:1], deadline_ms=100)
        with pytest.raises(Unavailable, match="none is registered"):
            await table.get(1, deadline_ms=100)
        assert frontends.told == []
        frontends.lead(ONE)
        await table.insert(ROWS[:1])

    assert frontends.told == ["fe-1.test"]


async def test_given_no_frontend_for_a_while_then_a_call_ends_long_before_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metasrv.sdk.rows.frontends.NONE_S", 0.02)
    async with scene() as (frontends, table), asyncio.timeout(120):
        frontends.lead()
        with pytest.raises(Unavailable, match="none is registered"):
            await table.insert(ROWS[:1], deadline_ms=3_600_000)


async def test_given_a_frontend_that_is_back_within_a_while_then_the_call_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("metasrv.sdk.rows.frontends.NONE_S", 3_600.0)
    async with scene() as (frontends, table):
        looks: list[None] = []

        def looked() -> None:
            looks.append(None)
            frontends.lead(*[ONE] * (len(looks) > 2))

        frontends.looked = looked
        await table.insert(ROWS[:1], deadline_ms=3_600_000)

    assert len(looks) == 3
    assert frontends.told == ["fe-1.test"]


@pytest.mark.slow
async def test_given_nobody_who_knows_the_frontends_then_nothing_is_done_and_it_is_said() -> None:
    async with scene() as (frontends, table):
        frontends.holders = None
        with pytest.raises(Unavailable, match="no metasrv says"):
            await table.insert(ROWS[:1], deadline_ms=100)

    assert frontends.told == []


async def test_given_one_row_or_key_in_place_of_a_list_then_the_right_form_is_told() -> None:
    async with scene() as (frontends, table):
        for work in (table.insert({"id": 1}), table.delete(5), table.get_many("5")):  # type: ignore[arg-type]
            with pytest.raises(Refused, match="a list of"):
                await work

    assert frontends.told == []


async def test_given_a_deadline_when_written_then_frontends_are_to_answer_before_it() -> None:
    async with scene() as (frontends, table):
        await table.insert(ROWS[:2], deadline_ms=10_000)
        await table.insert(ROWS[2:4], deadline_ms=1_000_000)
        await table.insert(ROWS[4:6], deadline_ms=2_000)

    short, at_most, shorter = frontends.within_ms
    assert 9_000 < short <= 10_000 - MARGIN_MS_MAX
    assert at_most == TRY_MS - MARGIN_MS_MAX
    assert 0 < shorter <= 2_000 - 200
