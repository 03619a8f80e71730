"""The gap of a switch is the longest write beside it, also of one that outlasts the pause."""

import pytest

from benchmarks.data.switches import QUIET_MS, SETTLE_MS, Switch, Write

SWITCH = Switch(began_ms=10_000, ended_ms=10_060)
CALM = [Write(at, 5) for at in range(0, 60_000, 50)]


def stalled(began_ms: int, took_ms: int) -> list[Write]:
    """Eight writers of which each waits, and none writes before it has its answer."""
    others = [write for write in CALM if not began_ms <= write.began_ms < began_ms + took_ms]
    return [*others, *[Write(began_ms + number, took_ms) for number in range(8)]]


@pytest.mark.parametrize("began_ms", [9_990, 10_030, 10_060 + SETTLE_MS])
@pytest.mark.parametrize("took_ms", [900, 3_000, SETTLE_MS + QUIET_MS + 20_000])
def test_given_all_writers_stalled_by_a_switch_then_the_gap_is_as_long_as_the_stall(
    began_ms: int, took_ms: int
) -> None:
    assert SWITCH.gap_ms(stalled(began_ms, took_ms)) == took_ms


@pytest.mark.parametrize("began_ms", [6_000, 10_061 + SETTLE_MS])
def test_given_a_stall_before_or_behind_a_switch_then_it_is_no_part_of_the_gap(
    began_ms: int,
) -> None:
    assert SWITCH.gap_ms(stalled(began_ms, 3_000)) == 5


def test_given_no_write_beside_a_switch_then_no_gap_is_made_up() -> None:
    with pytest.raises(AssertionError, match="nothing was written"):
        SWITCH.gap_ms([Write(1_000, 5), Write(30_000, 5)])
