"""The positions of a log: what two logs have in common, and where each may be cut."""

from itertools import product

import pytest

from dataplane.log.records import LogPosition
from dataplane.region.copies.history import START, EpochRun, LogHistory


def history(*epochs: int) -> LogHistory:
    """A log whose records have these epochs."""
    log = LogHistory()
    for sequence, epoch in enumerate(epochs, start=1):
        log = log.extended(LogPosition(epoch, sequence))
    return log


def common(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The length of the prefix that two lists of epochs share."""
    pairs = list(zip(one, other, strict=False))
    return next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))


RISING = [
    tuple(sorted(epochs)) for length in range(5) for epochs in product((1, 2, 3), repeat=length)
]
LOGS = sorted(set(RISING))


def test_given_two_logs_when_compared_then_the_last_common_position_is_that_of_their_records() -> (
    None
):
    """Logs of one region: a position has one record, and all before it are the same too."""
    compared = 0
    for one, other in product(LOGS, LOGS):
        shared = [n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a == b]
        if shared and shared[-1] >= common(one, other):
            continue  # no two logs of one region are so
        position = history(*one).common_with(history(*other))
        assert position is not None
        assert position.sequence == common(one, other), (one, other)
        compared += 1

    assert compared > 300


def test_given_logs_that_are_cut_in_front_when_compared_then_the_result_is_the_same_or_none() -> (
    None
):
    for one, other in product(LOGS, LOGS):
        whole = history(*one).common_with(history(*other))
        assert whole is not None
        for base in range(len(one) + 1):
            shorter = history(*one).flushed_to(base)
            position = shorter.common_with(history(*other))
            assert position == (whole if whole.sequence >= base else None), (one, other, base)
            assert history(*other).common_with(shorter) == position


def test_given_a_base_of_which_the_epoch_is_not_known_when_compared_then_it_is_like_no_other() -> (
    None
):
    unknown = LogHistory(LogPosition(0, 4), (), 4)

    assert unknown.common_with(unknown) is None
    assert LogHistory().common_with(LogHistory()) == START
    assert unknown.common_with(history(1, 1, 1, 1)) is None


def test_given_a_log_when_flushed_and_cut_then_positions_stay() -> None:
    log = history(1, 1, 2, 2, 4).flushed_to(2)

    assert log.base == LogPosition(1, 2)
    assert log.runs == (EpochRun(2, 3), EpochRun(4, 5))
    assert [log.at(sequence) for sequence in (1, 2, 4, 5, 6)] == [
        None,
        (1, 2),
        (2, 4),
        (4, 5),
        None,
    ]
    assert log.cut_to(4).last == LogPosition(2, 4)
    assert log.cut_to(2).last == log.base
    assert log.flushed_to(5).last == LogPosition(4, 5)


@pytest.mark.parametrize("position", [(4, 5), (4, 7), (3, 6), (0, 6)])
def test_given_a_record_behind_a_gap_or_of_an_older_epoch_then_it_does_not_follow(
    position: tuple[int, int],
) -> None:
    log = history(1, 1, 2, 2, 4)

    assert log.follows(LogPosition(4, 6))
    assert not log.follows(LogPosition(*position))
