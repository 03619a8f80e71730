"""The read rate of a reorg while statements run."""

from dataclasses import replace

from procedures.elements.reorg_pace import HOLD_MS, ROWS_PER_S_MIN, Pace, PaceInput, paced

CALM = PaceInput(now_ms=HOLD_MS, p99_ms=12.0, p99_before_ms=10.0, rows_per_s=200_000.0)
SLOW = replace(CALM, p99_ms=80.0)
FREE = Pace()


def after(pace: Pace, facts: PaceInput, rounds: int) -> Pace:
    """So many times the time that a rate stands."""
    for number in range(rounds):
        pace = paced(pace, replace(facts, now_ms=facts.now_ms + number * HOLD_MS))
    return pace


def test_given_statements_that_stay_fast_then_a_reorg_runs_as_fast_as_it_goes() -> None:
    assert after(FREE, CALM, 5) == FREE


def test_given_statements_that_become_slow_then_it_halves_what_it_was_measured_at() -> None:
    assert paced(FREE, SLOW).rows_per_s == 100_000


def test_given_statements_that_stay_slow_then_it_halves_again_and_never_stands_still() -> None:
    assert after(FREE, SLOW, 3).rows_per_s == 25_000
    assert after(FREE, SLOW, 30).rows_per_s == ROWS_PER_S_MIN


def test_given_a_rate_that_was_just_set_then_it_stands_until_its_effect_is_reported() -> None:
    slowed = paced(FREE, SLOW)

    assert paced(slowed, replace(SLOW, now_ms=SLOW.now_ms + HOLD_MS - 1)) == slowed


def test_given_statements_that_are_fast_again_then_it_comes_back_in_small_steps() -> None:
    slowed = Pace(1_000)

    assert after(slowed, replace(CALM, rows_per_s=1_000.0), 1).rows_per_s == 1_250
    assert after(slowed, replace(CALM, rows_per_s=1_000.0), 4).rows_per_s == 2_440
    assert after(slowed, replace(CALM, rows_per_s=400.0), 1).rows_per_s is None


def test_given_nobody_who_writes_then_nobody_is_spared() -> None:
    quiet = replace(SLOW, p99_ms=None)
    unknown = replace(SLOW, p99_before_ms=None)

    assert paced(FREE, quiet) == paced(FREE, unknown) == FREE


def test_given_a_rate_of_an_operator_then_it_is_that_at_once_until_it_is_taken_back() -> None:
    wanted = paced(Pace(5_000), replace(SLOW, now_ms=1, operator_rows_per_s=70_000))
    still = paced(wanted, replace(SLOW, now_ms=5 * HOLD_MS, operator_rows_per_s=70_000))
    free = paced(wanted, replace(CALM, now_ms=2))

    assert (wanted.rows_per_s, wanted.is_wanted, still) == (70_000, True, wanted)
    assert (free.rows_per_s, free.is_wanted) == (None, False)
