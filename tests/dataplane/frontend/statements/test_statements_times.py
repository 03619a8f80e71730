"""A statement has the time of its first sender, whoever passes it on and however late."""

import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest

from dataplane.datanode.config import DatanodeConfig
from dataplane.region.memory.statements import StatementWindow
from metasrv.demo import traffic
from metasrv.program.config import ServerConfig
from metasrv.sdk.rows import rows, via_frontend
from metasrv_base.errors import Conflict, Unknown
from metasrv_base.rows.retry import SENT_MS_MAX
from metasrv_base.wire.frontend.rows import SENT_MS
from tests.dataplane.frontend.bench import Bench, running
from tests.dataplane.frontend.http.requests import CHECKSUM, get, post
from tests.dataplane.frontend.tables import feed_table
from tests.metasrv.api.raw import Got
from tests.metasrv.sdk.row_samples import ROWS
from tests.metasrv.sdk.scene import scene

WINDOW = StatementWindow()
ROW = {"op": "upsert", "rows": [{"id": 1, "a": 1, "b": "x"}]}
HELD_UP_MS = 600_000
Meet = Callable[[httpx.Request], Awaitable[None]]


def held_up(bench: Bench, first: int = 0) -> Meet:
    """All batches behind the *first* ones come that much later, by the clocks on the walls, and
    once those are done."""
    met, done = 0, asyncio.Semaphore(0)

    async def answered(request: httpx.Request) -> None:
        if request.url.path.endswith("/batch"):
            done.release()

    async def meet(request: httpx.Request) -> None:
        nonlocal met
        if request.url.path.endswith("/batch"):
            met += 1
            if met == first + 1:
                for _ in range(first):
                    await done.acquire()
                bench.clock.epoch_ms += HELD_UP_MS

    bench.way.done = answered
    return meet


async def count(bench: Bench) -> int:
    found: int = (await get(bench, CHECKSUM)).json["rows"]
    return found


def keyed(bench: Bench, sent_ms: int | None = None) -> dict[str, str]:
    sent_ms = bench.clock.wall_ms() if sent_ms is None else sent_ms
    return {"idempotency-key": "mine", SENT_MS: str(sent_ms)}


@pytest.mark.parametrize("named", [True, False], ids=["keyed", "without a key"])
async def test_given_a_frontend_that_stood_still_then_its_statement_is_refused(
    named: bool,
) -> None:
    async with running() as bench:
        bench.way.meet = held_up(bench)
        got = await post(bench, ROW, **(keyed(bench) if named else {}))
        rows_there = await count(bench)

    assert got.status == 409
    assert got.json["code"] == "statement-too-old"
    facts = got.json["facts"]
    assert facts["now_ms"] - facts["sent_ms"] == HELD_UP_MS
    assert [one["outcome"] for one in got.json["regions"]] == ["not-applied"]
    assert rows_there == 0


async def test_given_a_region_that_took_its_part_when_another_is_late_then_each_is_told() -> None:
    async with running(feed_table(regions=2)) as bench:
        bench.way.meet = held_up(bench, first=1)
        rows = [{"id": id, "a": id, "b": "x"} for id in range(10)]
        got = await post(bench, {"op": "insert", "rows": rows}, **keyed(bench))
        there = await count(bench)

    assert (got.status, got.json["code"]) == (409, "statement-too-old")
    facts = got.json["facts"]
    outcomes = {one["outcome"]: one.get("code") for one in got.json["regions"]}
    assert outcomes == {"applied": None, "not-applied": "statement-too-old"}
    assert facts["rows_applied"] == there > 0


async def test_given_a_copy_that_is_too_old_when_the_first_was_applied_then_nobody_knows() -> None:
    async with running() as bench:
        headers = keyed(bench)
        await post(bench, ROW, **headers)
        bench.clock.epoch_ms += WINDOW.age_ms_max
        again = await post(bench, ROW, **headers)
        bench.clock.epoch_ms += 1
        late = await post(bench, ROW, **headers)

    assert (again.status, _outcomes(again)) == (200, [("applied", True)])
    assert (late.status, late.json["code"]) == (409, "statement-too-old")
    assert [one["outcome"] for one in late.json["regions"]] == ["unknown"]


def _outcomes(got: Got) -> list[tuple[str, bool]]:
    return [(one["outcome"], one["repeated"]) for one in got.json["regions"]]


async def test_given_a_key_without_a_time_when_it_comes_again_then_it_is_known_for_the_window() -> (
    None
):
    async with running() as bench:
        await post(bench, ROW, **{"idempotency-key": "mine"})
        bench.clock.epoch_ms += WINDOW.window_ms
        again = await post(bench, ROW, **{"idempotency-key": "mine"})

    assert _outcomes(again) == [("applied", True)]


async def test_given_a_sender_whose_clock_is_ahead_when_it_writes_then_both_are_named() -> None:
    async with running() as bench:
        now_ms = bench.clock.wall_ms()
        got = await post(bench, ROW, **keyed(bench, now_ms + WINDOW.drift_ms + 1))

    assert (got.status, got.json["code"]) == (409, "clock-skew")
    facts = got.json["facts"]
    assert (facts["sent_ms"], facts["now_ms"]) == (now_ms + WINDOW.drift_ms + 1, now_ms)


@pytest.mark.parametrize("sent_ms", ["", "0", "-1", "1.5", "now", "9" * 17])
async def test_given_a_time_that_is_none_when_it_is_sent_then_it_is_refused(sent_ms: str) -> None:
    async with running() as bench:
        got = await post(bench, ROW, **{SENT_MS: sent_ms})
        there = await count(bench)

    assert (got.status, got.json["code"], there) == (422, "invalid-request", 0)


async def test_given_an_sdk_whose_answer_was_lost_when_the_copy_is_too_old_then_nobody_knows() -> (
    None
):
    async with scene(regions=1) as (frontends, table):
        assert frontends.bench is not None
        bench = frontends.bench
        frontends.faults = [("after", httpx.ReadTimeout("lost"))]
        bench.way.meet = held_up(bench, first=1)
        with pytest.raises(Unknown) as told:
            await table.insert(ROWS[:1])

    assert told.value.facts["reason"] == "statement-too-old"


async def test_given_a_caller_that_says_when_it_was_made_then_no_call_applies_it_twice() -> None:
    async with scene(regions=1) as (frontends, table):
        assert frontends.bench is not None
        clock = frontends.bench.clock
        made_ms = clock.wall_ms()
        await table.upsert(ROWS[:1], statement_id="mine", sent_ms=made_ms)
        clock.epoch_ms += HELD_UP_MS
        with pytest.raises(Conflict, match="statement-too-old"):
            await table.upsert(ROWS[:1], statement_id="mine", sent_ms=made_ms)


def test_given_the_programs_when_they_send_a_statement_then_regions_remember_it_twice_as_long() -> (
    None
):
    ages_ms = ServerConfig.model_fields["transaction_age_max_ms"].metadata
    (age_ms_max,) = (one.le for one in ages_ms if hasattr(one, "le"))
    longest_ms = max(
        rows.DEADLINE_MS,
        via_frontend.PAGE_S * 1000,
        traffic.STATEMENT_MS,
        age_ms_max,
    )

    assert longest_ms == SENT_MS_MAX
    window = DatanodeConfig.model_fields["statement_window_ms"]
    assert StatementWindow().window_ms == window.default >= 2 * longest_ms
    (least_ms,) = (one.ge for one in window.metadata if hasattr(one, "ge"))
    assert least_ms >= 2 * longest_ms
