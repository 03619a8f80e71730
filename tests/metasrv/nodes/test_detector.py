"""Phi-accrual: the known cases of the detector, and what a stalled server must forgive."""

import pytest

from metasrv.nodes.detector import PHI_IN_TIME_MAX, PHI_MAX, PhiConfig, PhiDetector

PLAIN = PhiConfig(first_interval_ms=1_000, deviation_ms_min=100, pause_ms=0)


def beating(config: PhiConfig, intervals: list[int]) -> tuple[PhiDetector, int]:
    """A detector that heard these intervals, and the time of the last heartbeat."""
    detector, now = PhiDetector(config, 0), 0
    for interval in intervals:
        now += interval
        detector.heard(now)
    return detector, now


def test_given_no_time_passed_when_asked_then_phi_is_almost_zero() -> None:
    detector, now = beating(PLAIN, [1_000] * 10)

    assert detector.phi(now) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("late_ms", "phi"),
    # -log10 of the upper tail of the normal distribution at (late - mean) / deviation
    [(1_000, 0.301), (1_100, 0.800), (1_200, 1.643), (1_300, 2.870), (1_600, 9.006)],
)
def test_given_regular_beats_when_late_then_phi_is_that_of_the_normal_tail(
    late_ms: int, phi: float
) -> None:
    detector, now = beating(PLAIN, [1_000] * 20)

    assert detector.phi(now + late_ms) == pytest.approx(phi, abs=0.001)


@pytest.mark.parametrize("intervals", [[], [1_000] * 20, [500, 1_500] * 10, [1_000] * 9 + [9_000]])
def test_given_any_beats_when_in_time_then_phi_is_at_most_that_of_the_mean(
    intervals: list[int],
) -> None:
    detector, now = beating(PLAIN, intervals)
    moments = [now + late for late in range(0, 5_000, 10)]

    in_time = [moment for moment in moments if detector.is_in_time(moment)]

    assert in_time == moments[: len(in_time)]
    assert 0 < len(in_time) < len(moments)
    assert max(map(detector.phi, in_time)) <= PHI_IN_TIME_MAX
    assert min(map(detector.phi, moments[len(in_time) :])) > 0.301


def test_given_silence_when_time_goes_on_then_phi_only_rises_and_stays_finite() -> None:
    detector, now = beating(PLAIN, [1_000] * 20)

    values = [detector.phi(now + late) for late in range(0, 100_000, 100)]

    assert values == sorted(values)
    assert values[-1] == PHI_MAX


def test_given_a_node_that_never_spoke_when_long_silent_then_it_is_dead_too() -> None:
    detector = PhiDetector(PhiConfig(), 0)

    assert not detector.is_dead(2_000)
    assert detector.is_dead(60_000)


def test_given_irregular_beats_when_late_then_more_patience_than_with_regular_ones() -> None:
    regular, at = beating(PLAIN, [1_000] * 20)
    irregular, then = beating(PLAIN, [500, 1_500] * 10)

    assert irregular.phi(then + 1_800) < regular.phi(at + 1_800)


def test_given_an_accepted_pause_when_that_long_late_then_not_dead() -> None:
    detector, now = beating(PhiConfig(pause_ms=3_000), [2_000] * 20)

    assert not detector.is_dead(now + 5_000)
    assert detector.is_dead(now + 7_000)


def test_given_a_dead_node_when_heard_again_then_alive_at_once() -> None:
    detector, now = beating(PhiConfig(), [2_000] * 20)
    assert detector.is_dead(now + 60_000)

    detector.heard(now + 60_000)

    assert not detector.is_dead(now + 62_000)


def test_given_this_server_stalled_when_forgiven_then_no_node_is_dead() -> None:
    detector, now = beating(PhiConfig(), [2_000] * 20)

    detector.forgive(60_000, now + 62_000)

    assert not detector.is_dead(now + 62_000)


def test_given_a_heartbeat_before_a_stall_is_forgiven_then_a_death_is_seen_as_soon_as_ever() -> (
    None
):
    """It waited at the socket, and is read first when the server goes on."""
    detector, now = beating(PhiConfig(), [2_000] * 20)
    detector.heard(now + 61_000)

    detector.forgive(60_000, now + 61_100)

    assert detector.last_ms == now + 61_100


def test_given_old_intervals_when_many_new_ones_came_then_they_are_forgotten() -> None:
    detector, now = beating(PLAIN, [10_000] * 50 + [1_000] * 100)

    assert detector.phi(now + 1_600) > 8


def test_given_an_outage_when_it_happens_again_then_it_counts_as_dead_again() -> None:
    detector, now = beating(PLAIN, [1_000] * 20)
    outage_ms = 60_000

    detector.heard(now + outage_ms)

    assert detector.is_dead(now + 2 * outage_ms)
