"""Estimates of the rate of reads: from the rounds of a reorg that runs, and from earlier ones for
the next."""

from keys.model.records import (
    Lock,
    ProcedureHistory,
    ProcedureOutcome,
    ProcedurePhase,
    ProcedureRecord,
    Resource,
)
from metasrv.settings.tunables import DEFAULTS
from procedures.dry_run.estimates import (
    MS_MIN,
    REORGS_MAX,
    ROWS_MIN,
    ROWS_PER_S,
    Rate,
    measured,
)
from procedures.elements.reorg import (
    PACES_MAX,
    IndexReorg,
    RoundPace,
    rate_per_s,
    with_made,
    with_taken,
)
from procedures.elements.reorg_width import ReorgWidth
from tests.procedures.dry_run.clients import CLIENT
from tests.procedures.elements.reorgs import made

HERE, THERE = Resource.table(1024, "main.public.t"), Resource.table(1025, "main.public.u")
NOT_YET = RoundPace(rows=0, ms=0)


def ended(
    rows: int, read_ms: int, resource: Resource = HERE, **changes: object
) -> ProcedureHistory:
    record = ProcedureRecord(
        kind="create_index",
        kind_format=1,
        step="finish",
        phase=ProcedurePhase.FORWARD,
        state={},
        submission=1,
        locks=tuple[Lock, ...](),
        resource=resource,
        client=CLIENT,
        submitted_at_ms=0,
        deadline_at_ms=1,
    )
    return ProcedureHistory(
        last=record.model_copy(update=changes),
        outcome=ProcedureOutcome.SUCCEEDED,
        result={"rows": rows, "read_ms": read_ms},
        finished_at_ms=1,
        catalog_version=None,
    )


def test_given_no_reorg_that_tells_when_a_rate_is_asked_for_then_it_is_assumed() -> None:
    nothing = ended(ROWS_MIN, 1_000).model_copy(update={"result": None})
    undone = ended(ROWS_MIN, 1_000).model_copy(update={"outcome": ProcedureOutcome.CANCELLED})
    slowed = ended(ROWS_MIN, 1_000, throttle_rows_per_s=10)
    resting = ended(ROWS_MIN, 1_000, throttle_percent=50)
    small, short = ended(ROWS_MIN - 1, 1_000), ended(ROWS_MIN, MS_MIN - 1)

    for one in (nothing, undone, slowed, resting, small, short):
        assert measured([one], HERE) == Rate(ROWS_PER_S, 0)


def test_given_reorgs_of_this_and_other_tables_when_asked_for_then_its_own_count_first() -> None:
    own, other = ended(60_000, 2_000), ended(900_000, 1_000, THERE)

    assert measured([other, own], HERE) == Rate(30_000, 1)
    assert measured([other, own], Resource.table(1026, "x")) == Rate(320_000, 2)


def test_given_many_reorgs_when_asked_for_then_the_newest_count() -> None:
    new, old = [ended(20_000, 1_000)] * REORGS_MAX, [ended(900_000, 1_000)] * 3

    assert measured([*new, *old], HERE) == Rate(20_000, REORGS_MAX)


def test_given_rounds_when_a_rate_is_told_then_by_the_last_ones_and_what_is_under_way() -> None:
    reorg = IndexReorg(index=3)
    assert rate_per_s(reorg, NOT_YET) is None

    for rows, ms in ((1_000_000, 1_000), *[(10_000, 1_000)] * PACES_MAX):
        reorg = with_taken(with_made(reorg, [made(1, rows)], ms), [])

    assert reorg.read_ms == (1 + PACES_MAX) * 1_000
    assert rate_per_s(reorg, NOT_YET) == 10_000
    assert rate_per_s(reorg, RoundPace(rows=0, ms=PACES_MAX * 1_000)) == 5_000


def test_given_nobody_says_otherwise_then_a_reorg_is_as_wide_as_its_setting_says() -> None:
    width = ReorgWidth()

    assert (width.jobs, width.regions) == (DEFAULTS.reorg_jobs_max, DEFAULTS.reorg_regions_max)
