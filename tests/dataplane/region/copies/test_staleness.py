"""Copies know how old their rows are at most, whatever is delayed, lost or deposed (P4.6, G57)."""

from collections.abc import Mapping

import pytest

from dataplane.region.copies import staleness
from dataplane.region.copies.staleness import AppliedLog, CommonAt, CopyStaleness
from tests.dataplane.region.copies.stale_world import StaleRules, lived

SEEDS = 60
PLANTED_SEEDS = 400


class OfAnyEpoch(CopyStaleness):
    """Compares sequences of different epochs."""

    def as_of_ms(self, applied: AppliedLog) -> int | None:
        told = self._positions[-1] if self._positions else None
        return None if told is None or told.sequence > applied.sequence else told.as_of_ms


class BeforeItHasThem(CopyStaleness):
    """Counts a position before its rows are applied."""

    def as_of_ms(self, applied: AppliedLog) -> int | None:
        return self._positions[-1].as_of_ms if self._positions else None


PLANTED: Mapping[str, StaleRules] = {
    "rows that count from the arrival of a message": StaleRules(counts_receipt=True),
    "a position of a leader that may not read": StaleRules(must_read=False),
    "a position that counts before its rows are applied": StaleRules(staleness=BeforeItHasThem),
}


def test_given_positions_when_rows_have_reached_one_then_its_time_counts() -> None:
    copy = CopyStaleness()
    for sequence, as_of_ms in ((3, 1_000), (5, 1_500), (5, 2_000), (9, 2_500)):
        copy.tell(CommonAt(1, sequence, as_of_ms), None)

    assert copy.as_of_ms(AppliedLog(1, 2)) is None
    assert copy.as_of_ms(AppliedLog(1, 4)) == 1_000
    assert copy.as_of_ms(AppliedLog(1, 5)) == 2_000
    assert copy.as_of_ms(AppliedLog(1, 100)) == 2_500


def test_given_messages_that_were_overtaken_then_they_change_nothing() -> None:
    copy = CopyStaleness()
    copy.tell(CommonAt(2, 5, 2_000), None)

    copy.tell(CommonAt(2, 4, 1_000), None)
    copy.tell(CommonAt(1, 9, 3_000), None)

    assert copy.as_of_ms(AppliedLog(2, 4)) is None
    assert copy.as_of_ms(AppliedLog(2, 5)) == 2_000


def test_given_the_leader_of_a_new_epoch_then_positions_of_before_say_nothing() -> None:
    copy = CopyStaleness()
    copy.tell(CommonAt(1, 9, 1_000), None)
    assert copy.as_of_ms(AppliedLog(2, 9)) is None, "its records up to 9 may be others"

    copy.tell(CommonAt(2, 4, 1_500), None)

    assert copy.as_of_ms(AppliedLog(1, 9)) is None
    assert copy.as_of_ms(AppliedLog(2, 9)) == 1_500
    wrong = OfAnyEpoch()
    wrong.tell(CommonAt(1, 9, 1_000), None)
    assert wrong.as_of_ms(AppliedLog(2, 9)) == 1_000, "so the rule is not vacuous"


def test_given_a_copy_that_lags_when_positions_come_then_they_are_bounded_and_it_moves_on() -> None:
    copy, applied = CopyStaleness(), AppliedLog(1, 0)
    for number in range(1, 1_000):
        copy.tell(CommonAt(1, number, number * 500), applied)

    assert len(copy._positions) == staleness.POSITIONS_MAX
    assert copy.as_of_ms(AppliedLog(1, 10)) == 5_000
    assert copy.as_of_ms(AppliedLog(1, 999)) == 999 * 500
    copy.tell(CommonAt(1, 1_000, 500_000), AppliedLog(1, 999))
    assert len(copy._positions) == 2


@pytest.mark.slow
def test_given_random_schedules_when_copies_are_read_then_no_row_is_missing_for_too_long() -> None:
    reads, promotions = 0, 0
    for seed in range(SEEDS):
        world = lived(seed, StaleRules())
        assert not world.too_old, seed
        reads += world.copy_reads
        promotions += world.promotions

    assert reads > 4 * SEEDS, "or nothing of it was tried"
    assert promotions > 4 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_given_a_planted_bug_when_copies_are_read_then_a_row_is_missing_for_too_long(
    name: str,
) -> None:
    assert any(lived(seed, PLANTED[name]).too_old for seed in range(PLANTED_SEEDS)), name
