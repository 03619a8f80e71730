"""A step that fails for good is undone after some attempts; a node that is only away is waited
for."""

import pytest

from keys.model.records import ProcedureOutcome, ProcedurePhase
from metasrv_base.errors import MetaError, Refused, Unavailable
from procedures.engine.retry import DEFINITE_MAX, STEP
from tests.procedures.harness.filling import Filling, filling
from tests.procedures.harness.tables import NODES
from tests.procedures.steps.probes import is_public, never_indexed_of_three

REGIONS = 3
ATTEMPTS_MS = sum(STEP.delay_ms(number, noise=0) for number in range(1, DEFINITE_MAX + 1))
"""At most as long as a step rests between so many attempts."""
LONG_MS = 10 * ATTEMPTS_MS
FAILED = Unavailable("job-failed", detail="KeyError: 'x'")
AWAY = Unavailable("not-ready", what="Spark", reason="the driver has ended")
REFUSES = Refused("invalid-request", reason="test")


def regions_say(at: Filling, error: MetaError) -> None:
    for node in NODES:
        at.cluster.plane.nodes[node].refuses["schema"] = error


def test_given_jobs_that_fail_for_good_when_filled_then_it_is_undone_after_some_attempts() -> None:
    async def scenario(at: Filling) -> None:
        at.jobs.fails = FAILED
        await at.submit()

        ended = await at.go_on()

        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert ended.last.error.code == "job-failed"
        assert at.jobs.began == DEFINITE_MAX * REGIONS
        assert ended.finished_at_ms - ended.last.submitted_at_ms < LONG_MS
        assert at.judge(ProcedureOutcome.ROLLED_BACK, never_indexed_of_three) == []

    filling(scenario)


@pytest.mark.case("catalog 92")
def test_given_regions_that_refuse_for_good_when_told_then_it_is_undone_after_some_attempts() -> (
    None
):
    async def scenario(at: Filling) -> None:
        regions_say(at, REFUSES)
        await at.submit()
        await at.cluster.clock.sleep_ms(2 * ATTEMPTS_MS)
        record = at.entry().held.record

        ended = await at.go_on()

        assert record.phase is ProcedurePhase.UNDO
        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert ended.last.error.code == "order-refused"
        assert at.judge(ProcedureOutcome.ROLLED_BACK, never_indexed_of_three) == []

    filling(scenario)


@pytest.mark.parametrize("who", ["Spark", "nodes"])
@pytest.mark.slow
@pytest.mark.case("catalog 92", "catalog 93")
def test_given_who_is_away_for_long_when_it_is_back_then_the_change_goes_on(who: str) -> None:
    async def scenario(at: Filling) -> None:
        if who == "Spark":
            at.jobs.fails = AWAY
        else:
            regions_say(at, AWAY)
        await at.submit()
        await at.cluster.clock.sleep_ms(LONG_MS)
        record = at.entry().held.record
        at.jobs.fails = None

        ended = await at.go_on()

        assert record.phase is ProcedurePhase.FORWARD
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario)


def test_given_jobs_that_fail_a_few_times_when_filled_then_the_change_goes_on() -> None:
    async def scenario(at: Filling) -> None:
        at.jobs.fails = FAILED
        await at.submit()
        await at.settle()
        at.jobs.fails = None

        ended = await at.go_on()

        assert at.jobs.began > REGIONS
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, is_public) == []

    filling(scenario)
