"""An index is filled region by region; who cancels, dies or leaves on the way does no harm."""

from typing import Any

import pytest

from keys.model.records import ProcedureOutcome
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Refused
from procedures.elements.reorg_pace import HOLD_MS, ROWS_PER_S_MIN, START_ROWS_PER_S
from procedures.engine.control import Control, State
from procedures.steps.reorg_round import LOOK_MS
from procedures.steps.reorg_steps import REFUSALS_MAX
from tests.procedures.harness.filling import PLACES, Filling, filling
from tests.procedures.harness.online import (
    LENIENT,
    REPEATED,
    UNINDEXES,
    VALIDATES,
    index_left,
    never_indexed,
    with_repeated_rows,
)
from tests.procedures.steps.probes import is_public, never_indexed_of_three

TAKES_NOTHING = Refused("invalid-request", reason="test")
STEPS = {"mark": "mark", "fill": "fill", "ingest": "fill", "close": "fill"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.case("online 67")
@pytest.mark.case("catalog 96")
def test_given_a_reorg_anywhere_when_cancelled_then_nothing_of_it_is_left(place: str) -> None:
    async def scenario(at: Filling) -> None:
        await at.hold(place)
        step = at.entry().held.record.step

        await at.control(Control.CANCEL)
        ended = await at.go_on()

        assert step == STEPS[place]
        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert at.judge(ProcedureOutcome.CANCELLED, never_indexed_of_three) == []

    filling(scenario)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.case("online 31", "online 69", "online 70")
@pytest.mark.case("catalog 95")
def test_given_a_reorg_anywhere_when_paused_and_led_on_and_resumed_then_it_finishes(
    place: str,
) -> None:
    async def scenario(at: Filling) -> None:
        await at.hold(place)

        await at.control(Control.PAUSE)
        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        paused = at.entry().state
        await at.control(Control.RESUME)
        ended = await at.go_on()

        assert (paused, ended.outcome) == (State.PAUSED, ProcedureOutcome.SUCCEEDED)
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.case("online 31")
def test_given_a_reorg_anywhere_when_its_regions_fail_over_then_each_row_has_its_entry(
    place: str,
) -> None:
    async def scenario(at: Filling) -> None:
        await at.hold(place)

        await at.fail_over()
        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario)


def test_given_jobs_that_fail_then_they_are_tried_again_under_other_names() -> None:
    async def scenario(at: Filling) -> None:
        at.jobs.failures = 5
        await at.submit()

        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.jobs.began == 3 + 5
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario)


def test_given_a_reorg_that_reads_then_its_rows_are_counted() -> None:
    async def scenario(at: Filling) -> None:
        await at.hold("fill")

        live, record = at.entry().live, at.entry().held.record

        assert (live.phase, live.done, live.total, live.unit) == ("fill", 3, 6, "rows")
        assert record.state["reorg"]["filled"] == []
        ended = await at.go_on()
        assert ended.result is not None
        assert {name: ended.result[name] for name in ("rows", "entries")} == {
            "rows": 6,
            "entries": 6,
        }

    filling(scenario)


@pytest.mark.case("online 36", "online 37")
@pytest.mark.case("input 61")
def test_given_rows_with_equal_values_when_a_unique_index_is_made_then_they_are_named() -> None:
    async def scenario(at: Filling) -> None:
        await at.submit(state=REPEATED)

        ended = await at.go_on()

        error = ended.last.error
        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert error is not None
        assert (error.code, error.facts["index"], error.facts["total"]) == (
            "unique-violation",
            "by_note",
            1,
        )
        assert [one["rows"] for one in error.facts["duplicates"]] == [[{"id": 1}, {"id": 2}]]
        assert at.judge(ProcedureOutcome.ROLLED_BACK, never_indexed) == []

    filling(scenario, with_repeated_rows)


def test_given_an_index_left_not_valid_when_its_rows_are_mended_then_it_is_made_public() -> None:
    async def scenario(at: Filling) -> None:
        await at.submit(state=LENIENT)
        left = await at.go_on()
        assert at.judge(ProcedureOutcome.SUCCEEDED, index_left) == []

        await at.submit("validate_index", VALIDATES)
        still = await at.go_on()
        mend(at)
        await at.submit("validate_index", VALIDATES)
        mended = await at.go_on()

        assert left.result is not None
        assert left.result["duplicates"] == 1
        assert (still.outcome, mended.outcome) == (
            ProcedureOutcome.ROLLED_BACK,
            ProcedureOutcome.SUCCEEDED,
        )
        assert [one.state for one in (await at.info()).indexes] == [ElementState.PUBLIC]
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario, with_repeated_rows)


def mend(at: Filling) -> None:
    for folder in at.cluster.plane.storage.folders.values():
        folder.files["file"] = frozenset({"1=same", "2=fixed", "3=other"})


def test_given_an_index_left_not_valid_when_its_drop_is_cancelled_then_it_is_not_public() -> None:
    async def scenario(at: Filling) -> None:
        await at.submit(state=LENIENT)
        await at.go_on()
        at.refuse("schema")
        await at.submit("drop_index", UNINDEXES)
        await at.settle()

        await at.control(Control.CANCEL)
        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.CANCELLED
        states = [one.state for one in (await at.info()).indexes]
        assert states == [ElementState.WRITE_ONLY]

    filling(scenario, with_repeated_rows)


def test_given_regions_that_never_take_what_is_made_then_it_is_undone_in_the_end() -> None:
    async def scenario(at: Filling) -> None:
        at.cluster.plane.nodes["dn-2"].refuses["ingest"] = TAKES_NOTHING
        at.cluster.plane.nodes["dn-1"].refuses["ingest"] = TAKES_NOTHING
        await at.submit()
        at.jobs.may_go_on.set()
        ended: Any = await at.cluster.leader.manager.wait(at.procedure, deadline_ms=600_000)

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK, ended.last.error
        assert at.jobs.began == 3 * REFUSALS_MAX
        assert at.judge(ProcedureOutcome.ROLLED_BACK, never_indexed_of_three) == []

    filling(scenario)


def test_given_a_rate_when_a_reorg_begins_then_its_jobs_together_may_read_no_faster() -> None:
    """Each is told the rate of all: the driver gives it to those that read (test_job_pace.py)."""

    async def scenario(at: Filling) -> None:
        await at.hold("mark")
        await at.throttle(3_000)
        at.allow()
        await at.cluster.clock.sleep_ms(4 * LOOK_MS)

        assert list(at.jobs.rates.values()) == [3_000] * 3
        assert (await at.go_on()).outcome is ProcedureOutcome.SUCCEEDED

    filling(scenario)


@pytest.mark.case("online 71")
def test_given_a_reorg_that_reads_when_throttled_then_its_jobs_are_told_soon() -> None:
    async def scenario(at: Filling) -> None:
        await at.hold("fill")

        await at.throttle(3_000)
        await at.cluster.clock.sleep_ms(LOOK_MS)
        told = list(at.jobs.throttled)
        limit = at.entry().live.pace.rows_per_s
        await at.throttle(None)
        await at.cluster.clock.sleep_ms(LOOK_MS)

        assert ({rate for _, rate in told}, len(told), limit) == ({3_000}, 3, 3_000)
        assert {rate for _, rate in at.jobs.throttled[3:]} == {None}
        assert (await at.go_on()).outcome is ProcedureOutcome.SUCCEEDED

    filling(scenario)


def test_given_statements_when_a_reorg_reads_then_faster_until_they_are_slow() -> None:
    async def scenario(at: Filling) -> None:
        async def rate_after(rows: int) -> int | None:
            """Each job has read *rows*; returns the rate after the time for which one stands."""
            at.jobs.read(rows)
            await at.cluster.clock.sleep_ms(HOLD_MS + LOOK_MS)
            return at.entry().live.pace.rows_per_s

        at.cluster.holders.p99_ms = 10.0
        await at.hold("fill")
        first = at.entry().live.pace.rows_per_s
        read = [await rate_after(rows) for rows in (40_000, 40_000, 120_000)]
        at.cluster.holders.p99_ms = 200.0
        slow = [await rate_after(rows) for rows in (280_000, 360_000, 400_000, 430_000)]

        assert (first, read) == (START_ROWS_PER_S, [40_000, 40_000, 80_000]), "one of them stood"
        assert slow == [40_000, 20_000, 10_000, ROWS_PER_S_MIN]
        assert set(at.jobs.rates.values()) == {ROWS_PER_S_MIN}
        at.cluster.holders.p99_ms = 10.0
        assert await rate_after(433_000) is None, "no rate of ours holds it back"
        assert (await at.go_on()).outcome is ProcedureOutcome.SUCCEEDED

    filling(scenario)
