"""A copy takes the records of its leader in order, and cuts back what the leader does not have."""

import pytest

from dataplane.log.records import LogPosition
from dataplane.region.copies.copy_view import CopyView, OfferedRecord
from dataplane.region.copies.history import LogHistory
from metasrv_base.errors import Conflict, Corrupt

ROOM = 1000


def history(*epochs: int) -> LogHistory:
    log = LogHistory()
    for sequence, epoch in enumerate(epochs, start=1):
        log = log.extended(LogPosition(epoch, sequence))
    return log


def offered(*positions: tuple[int, int]) -> list[OfferedRecord]:
    return [OfferedRecord(LogPosition(*position), 10) for position in positions]


def view(*epochs: int, epoch: int = 2) -> CopyView:
    return CopyView.opened(epoch, history(*epochs))


def test_given_records_in_order_when_offered_then_those_behind_the_last_are_taken() -> None:
    copy = view(1, 2)

    assert copy.taken(2, offered((2, 3), (2, 4)), ROOM) == range(2)
    assert copy.taken(2, offered((1, 1), (2, 2), (2, 3)), ROOM) == range(2, 3)


def test_given_a_gap_when_offered_then_nothing_behind_it_is_taken() -> None:
    copy = view(1, 2)

    assert copy.taken(2, offered((2, 4)), ROOM) == range(0)
    assert copy.taken(2, offered((2, 3), (2, 5)), ROOM) == range(1)


def test_given_a_record_of_an_older_epoch_when_it_fills_the_log_then_it_is_taken() -> None:
    copy = view(1, epoch=3)

    assert copy.taken(3, offered((1, 2), (3, 3)), ROOM) == range(2)


def test_given_a_record_that_contradicts_the_log_when_offered_then_corrupt() -> None:
    copy = view(1, 2)

    with pytest.raises(Corrupt):
        copy.taken(2, offered((1, 2)), ROOM)
    with pytest.raises(Corrupt):
        copy.taken(2, offered((3, 3)), ROOM)


def test_given_an_older_epoch_when_its_leader_speaks_then_it_is_refused_in_every_way() -> None:
    copy = view(1, 2, epoch=3)

    with pytest.raises(Conflict):
        copy.taken(2, offered((2, 3)), ROOM)
    with pytest.raises(Conflict):
        copy.heard_common(2, 2)
    with pytest.raises(Conflict):
        copy.cut_for(2, history(1, 2))
    assert copy.common == 0


def test_given_a_full_memory_when_offered_then_only_what_fits_is_taken() -> None:
    copy = view()

    assert copy.taken(2, offered((2, 1), (2, 2), (2, 3)), 29) == range(2)
    assert copy.taken(2, offered((2, 1)), 9) == range(0)


def test_given_a_new_leader_when_followed_then_the_tail_that_it_lacks_is_cut() -> None:
    copy = view(1, 1, 2)
    cut = copy.cut_for(3, history(1, 1, 3))
    assert cut == LogPosition(1, 2)

    copy.followed(3, cut)

    assert copy.history == history(1, 1)
    assert copy.taken(3, offered((1, 2), (3, 3)), ROOM) == range(1, 2)


def test_given_a_log_that_does_not_reach_back_when_followed_then_only_files_bring_it_up() -> None:
    copy = view(1, 1)

    assert copy.cut_for(3, history(1, 1, 1, 3).flushed_to(3)) is None


def test_given_a_common_row_when_a_leader_lacks_it_then_it_is_never_cut() -> None:
    copy = view(1, 1, 2)
    copy.heard_common(2, 3)

    with pytest.raises(Corrupt):
        copy.cut_for(3, history(1, 1, 3))


def test_given_what_is_common_when_heard_then_it_counts_as_far_as_the_log_has_it() -> None:
    copy = view(1, 1)

    copy.heard_common(2, 5)
    assert copy.common == 2
    copy.heard_common(2, 1)
    assert copy.common == 2, "it never falls"
    copy.appended([LogPosition(2, 3)])
    assert copy.common == 2
    with pytest.raises(AssertionError):
        copy.flushed(3)
    copy.flushed(2)
    assert copy.history.base == LogPosition(1, 2)


def test_given_a_copy_that_starts_then_only_what_is_in_files_is_known_as_common() -> None:
    copy = CopyView.opened(2, history(1, 1, 2).flushed_to(2))

    assert copy.common == 2
