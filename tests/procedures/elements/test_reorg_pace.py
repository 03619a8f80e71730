"""The read rate of a reorg while statements run."""

from dataclasses import replace

from procedures.elements.reorg_pace import (
    HOLD_MS,
    ROWS_PER_S_MIN,
    START_ROWS_PER_S,
    Pace,
    PaceInput,
    PaceStage,
    paced,
)

CALM = PaceInput(now_ms=HOLD_MS, p99_ms=12.0, p99_before_ms=10.0, rows_per_s=200_000.0)
SLOW = replace(CALM, p99_ms=80.0)
FREE = Pace(None, 0, PaceStage.SETTLED)


def after(pace: Pace, facts: PaceInput, rounds: int) -> Pace:
    """So many times the time that a rate stands."""
    for number in range(rounds):
        pace = paced(pace, replace(facts, now_ms=facts.now_ms + number * HOLD_MS))
    return pace


def test_given_statements_when_a_reorg_begins_then_it_begins_slowly() -> None:
    first = paced(Pace(), replace(CALM, now_ms=1))

    assert first == Pace(START_ROWS_PER_S, 1, PaceStage.RISING)


def test_given_no_statements_when_a_reorg_begins_then_as_fast_as_it_goes() -> None:
    nobody = replace(CALM, p99_ms=None, p99_before_ms=None)

    assert paced(Pace(), nobody).rows_per_s is None
    assert after(Pace(), nobody, 5).rows_per_s is None


def test_given_statements_that_stay_fast_then_the_rate_doubles_until_it_limits_nothing() -> None:
    rising = paced(Pace(), replace(CALM, now_ms=0))

    assert after(rising, CALM, 1).rows_per_s == 2 * START_ROWS_PER_S
    assert after(rising, CALM, 4).rows_per_s == 16 * START_ROWS_PER_S
    assert after(rising, CALM, 8).rows_per_s is None, "it reads 200,000 rows a second, not more"
    assert after(rising, CALM, 30).rows_per_s is None


def test_given_a_rising_rate_when_statements_become_slow_then_it_is_halved_and_rises_slowly() -> (
    None
):
    risen = after(paced(Pace(), replace(CALM, now_ms=0)), CALM, 3)
    slowed = paced(risen, replace(SLOW, now_ms=5 * HOLD_MS))
    again = paced(slowed, replace(CALM, now_ms=6 * HOLD_MS))

    assert [pace.rows_per_s for pace in (risen, slowed, again)] == [160_000, 80_000, 100_000]


def test_given_a_job_that_has_read_nothing_yet_then_its_rate_stands_and_is_judged_later() -> None:
    rising = paced(Pace(), replace(CALM, now_ms=0))
    starting = replace(CALM, rows_per_s=0.0)
    begun = after(rising, starting, 4)

    assert begun.rows_per_s == START_ROWS_PER_S
    assert paced(begun, replace(CALM, now_ms=begun.since_ms + HOLD_MS - 1)) == begun


def test_given_statements_that_become_slow_then_it_halves_what_it_was_measured_at() -> None:
    assert paced(FREE, SLOW).rows_per_s == 100_000


def test_given_statements_that_stay_slow_then_it_halves_again_and_never_stands_still() -> None:
    assert after(FREE, SLOW, 3).rows_per_s == 25_000
    assert after(FREE, SLOW, 30).rows_per_s == ROWS_PER_S_MIN


def test_given_a_rate_that_was_just_set_then_it_stands_until_its_effect_is_reported() -> None:
    slowed = paced(FREE, SLOW)

    assert paced(slowed, replace(SLOW, now_ms=SLOW.now_ms + HOLD_MS - 1)) == slowed


def test_given_statements_that_are_fast_again_then_it_comes_back_in_small_steps() -> None:
    slowed = Pace(10_000, 0, PaceStage.SETTLED)

    assert after(slowed, replace(CALM, rows_per_s=10_000.0), 1).rows_per_s == 12_500
    assert after(slowed, replace(CALM, rows_per_s=10_000.0), 4).rows_per_s == 24_413
    assert after(slowed, replace(CALM, rows_per_s=4_000.0), 1).rows_per_s is None


def test_given_nobody_who_writes_then_nobody_is_spared() -> None:
    quiet = replace(SLOW, p99_ms=None)
    unknown = replace(SLOW, p99_before_ms=None)

    assert paced(FREE, quiet) == paced(FREE, unknown) == FREE


def test_given_a_rate_of_an_operator_then_it_is_that_at_once_until_it_is_taken_back() -> None:
    risen = Pace(5_000, 0, PaceStage.RISING)
    wanted = paced(risen, replace(SLOW, now_ms=1, operator_rows_per_s=70_000))
    still = paced(wanted, replace(SLOW, now_ms=5 * HOLD_MS, operator_rows_per_s=70_000))
    again = paced(wanted, replace(CALM, now_ms=2))

    assert wanted == still == Pace(70_000, 1, PaceStage.OPERATOR)
    assert again == Pace(START_ROWS_PER_S, 2, PaceStage.RISING)
