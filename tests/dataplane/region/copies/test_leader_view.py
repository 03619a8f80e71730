"""A leader counts a record when every copy that it requires has it; the set changes in order."""

import pytest

from dataplane.region.copies.leader_view import (
    LAG_MS_MAX,
    NOTHING,
    SILENT_MS_MAX,
    CopyName,
    CopySet,
    LeaderView,
    LeaveReason,
    OwnLog,
    RecordState,
)
from dataplane.region.copies.promises import PROMISE_MS
from metasrv_base.errors import Conflict

A, B, C = (CopyName(f"dn-{n}", f"/disk/{n}/region") for n in "abc")


def members(*in_sync: CopyName, learners: tuple[CopyName, ...] = (), version: int = 1) -> CopySet:
    return CopySet(version, 2, frozenset(in_sync), frozenset(learners))


def leader(
    at: CopySet, end: int = 0, common: int = 0, min_in_sync: int = 1, name: CopyName = A
) -> LeaderView:
    return LeaderView.open(name, at, min_in_sync, OwnLog(end, common), now_ms=0)


def test_given_a_set_of_three_when_one_lacks_a_record_then_it_waits() -> None:
    view = leader(members(A, B, C))
    view.appended(1, 0)
    view.acknowledged(B, 2, 1, 0)
    assert view.judge(1) is RecordState.WAITS

    view.acknowledged(C, 2, 1, 0)

    assert view.judge(1) is RecordState.COUNTS
    assert view.common == 1


def test_given_copies_that_are_faster_than_the_own_disk_then_a_record_waits_for_it() -> None:
    view = leader(members(A, B))
    view.acknowledged(B, 2, 1, 0)
    assert view.judge(1) is RecordState.WAITS

    view.appended(1, 0)

    assert view.judge(1) is RecordState.COUNTS


@pytest.mark.parametrize(
    ("copy", "epoch"),
    [(B, 1), (B, 3), (B._replace(root="/disk/b/another"), 2), (C, 2)],
    ids=["epoch before", "epoch behind", "another root", "not in the route"],
)
def test_given_an_answer_of_another_epoch_or_root_then_it_counts_for_nothing(
    copy: CopyName, epoch: int
) -> None:
    view = leader(members(A, B))
    view.appended(1, 0)

    view.acknowledged(copy, epoch, 1, 0)

    assert view.judge(1) is RecordState.WAITS
    assert view.durable_at(B) == NOTHING


def test_given_a_late_answer_when_a_higher_one_was_heard_then_nothing_falls() -> None:
    view = leader(members(A, B))
    view.appended(2, 0)
    view.acknowledged(B, 2, 2, 0)

    view.acknowledged(B, 2, 1, 0)

    assert (view.durable_at(B), view.common) == (2, 2)


def test_given_a_promoted_copy_when_others_have_not_answered_then_it_reads_nothing() -> None:
    view = leader(members(A, B), end=3, common=1)
    assert not view.may_read
    view.acknowledged(B, 2, 2, 0)
    assert not view.may_read

    view.acknowledged(B, 2, 3, 0)

    assert view.may_read


def test_given_a_leader_that_is_alone_then_what_it_opened_with_counts_at_once() -> None:
    assert leader(members(A, learners=(B,)), end=3).common == 3


@pytest.mark.parametrize(("common", "opened"), [(1, 3), (3, 1)])
def test_given_a_learner_when_it_lacks_what_is_common_or_was_opened_then_it_does_not_join(
    common: int, opened: int
) -> None:
    view = leader(members(A, B, learners=(C,)), end=opened)
    view.appended(max(common, opened), 0)
    view.acknowledged(B, 2, common, 0)
    view.acknowledged(C, 2, 2, 0)
    assert view.joins_next(serves=True) is None

    view.acknowledged(C, 2, 3, 0)

    assert view.joins_next(serves=True) == C


def test_given_a_promoted_copy_when_its_promise_lasts_then_it_adds_nobody() -> None:
    view = leader(members(A, learners=(C,)))
    view.acknowledged(C, 2, 3, 0)

    assert view.joins_next(serves=False) is None
    assert view.joins_next(serves=True) == C


def test_given_a_learner_that_was_silent_when_it_might_join_then_it_is_asked_again() -> None:
    view = leader(members(A, B))
    view.acknowledged(B, 2, 3, 0)
    view.read_route(members(A, learners=(B,), version=2), 0)

    assert not view.ask_again(SILENT_MS_MAX - 1)
    assert view.joins_next(serves=True) == B
    assert view.ask_again(SILENT_MS_MAX), "perhaps its disk is gone by now"
    assert view.joins_next(serves=True) is None
    assert not view.ask_again(SILENT_MS_MAX)

    view.acknowledged(B, 2, 3, SILENT_MS_MAX)
    assert view.joins_next(serves=True) == B


def test_given_a_learner_that_joins_then_it_is_required_from_the_request_on() -> None:
    view = leader(members(A, learners=(C,), version=7))
    view.acknowledged(C, 2, 0, 0)

    assert view.join(C, 0) == 7
    view.appended(1, 0)

    assert view.judge(1) is RecordState.WAITS
    assert view.joins_next(serves=True) is None, "one at a time"


def test_given_a_request_to_join_when_its_outcome_is_not_known_then_it_is_still_required() -> None:
    view = leader(members(A, learners=(C,), version=7))
    view.acknowledged(C, 2, 0, 0)
    view.join(C, 0)
    view.read_route(members(A, learners=(C,), version=7), 0)
    assert view.required == {A, C}

    view.read_route(members(A, learners=(C,), version=8), 0)

    assert view.required == {A}, "its compare of version 7 fails from now on"


def test_given_a_request_that_was_granted_when_the_route_is_read_then_it_is_a_member() -> None:
    view = leader(members(A, learners=(C,), version=7))
    view.acknowledged(C, 2, 0, 0)
    view.join(C, 0)

    view.read_route(members(A, C, version=8), 0)

    assert view.required == {A, C}
    assert view.joining is None


def test_given_a_slow_copy_then_it_is_required_until_the_route_lacks_it() -> None:
    view = leader(members(A, B))
    view.appended(1, 0)
    view.note_answer(B, LAG_MS_MAX - 1)
    assert view.leaves(LAG_MS_MAX - 1) == {}
    assert view.leaves(LAG_MS_MAX) == {B: LeaveReason.SLOW}
    assert view.judge(1) is RecordState.WAITS

    view.read_route(members(A, learners=(B,), version=2), 0)

    assert view.judge(1) is RecordState.COUNTS
    assert view.receivers == {B}, "it is sent everything, and counts for nothing"


def test_given_a_copy_that_makes_progress_or_lacks_nothing_then_it_does_not_leave() -> None:
    view = leader(members(A, B, C))
    view.acknowledged(B, 2, 0, 0)
    view.acknowledged(C, 2, 0, 0)
    late = 10 * LAG_MS_MAX
    view.note_answer(B, late)
    view.note_answer(C, late)
    assert view.leaves(late) == {}

    view.appended(2, late)
    view.acknowledged(B, 2, 1, late + LAG_MS_MAX - 1)
    view.note_answer(C, late + LAG_MS_MAX - 1)

    assert view.leaves(late + LAG_MS_MAX) == {C: LeaveReason.SLOW}


def test_given_a_copy_whose_disk_was_emptied_then_it_leaves_at_once_and_is_sent_all_again() -> None:
    view = leader(members(A, B))
    view.appended(5, 0)
    view.acknowledged(B, 2, 5, 0)

    view.lost(B, 2, 0, 0)

    assert view.leaves(0) == {B: LeaveReason.LOST}
    assert (view.durable_at(B), view.common) == (0, 5), "and what counted still does"
    view.read_route(members(A, learners=(B,), version=2), 0)
    assert view.joins_next(serves=True) is None
    view.acknowledged(B, 2, 5, 0)
    assert view.joins_next(serves=True) == B


@pytest.mark.parametrize(
    ("silent", "min_in_sync", "after_ms"),
    [
        ((C,), 2, SILENT_MS_MAX),
        ((B, C), 2, LAG_MS_MAX),
        ((B, C), 1, SILENT_MS_MAX),
        ((C,), 3, LAG_MS_MAX),
    ],
    ids=["enough are left", "too few are left", "one is enough", "all are needed"],
)
def test_given_silent_copies_when_those_that_answer_are_enough_then_they_leave_soon(
    silent: tuple[CopyName, ...], min_in_sync: int, after_ms: int
) -> None:
    view = leader(members(A, B, C), min_in_sync=min_in_sync)
    for copy in {B, C}.difference(silent):
        view.acknowledged(copy, 2, 0, after_ms)

    assert view.leaves(after_ms - 1) == {}
    assert view.leaves(after_ms).keys() == set(silent)


def test_given_a_learner_that_was_asked_nothing_when_it_joins_then_its_silence_begins() -> None:
    view = leader(members(A, learners=(C,), version=7))
    view.acknowledged(C, 2, 0, 0)
    view.join(C, 50_000)
    view.read_route(members(A, C, version=8), 50_010)

    assert view.leaves(50_000 + SILENT_MS_MAX - 1) == {}
    assert view.leaves(50_000 + SILENT_MS_MAX) == {C: LeaveReason.SILENT}


def test_the_time_of_a_silent_copy_is_that_of_a_promise() -> None:
    assert SILENT_MS_MAX == PROMISE_MS


def test_given_fewer_copies_than_the_minimum_then_nothing_is_ordered_or_acknowledged() -> None:
    view = leader(members(A, B), min_in_sync=2)
    assert view.may_order
    view.appended(1, 0)

    view.read_route(members(A, learners=(B, C), version=2), 0)

    assert not view.may_order, "learners do not count"
    assert view.judge(1) is RecordState.TOO_FEW
    assert view.may_read


def test_given_a_copy_that_was_asked_to_join_then_it_counts_once_the_route_has_said_so() -> None:
    view = leader(members(A, learners=(C,), version=7), min_in_sync=2)
    view.acknowledged(C, 2, 0, 0)
    view.join(C, 0)

    assert C in view.required
    assert not view.may_order, "if this disk is lost now, nobody promotes the other"
    view.read_route(members(A, C, version=8), 0)
    assert view.may_order


def test_given_an_older_route_when_read_then_nothing_changes() -> None:
    view = leader(members(A, B, version=4))

    view.read_route(members(A, version=3), 0)

    assert view.required == {A, B}


def test_given_the_route_of_another_leader_when_read_then_this_one_leads_no_more() -> None:
    view = leader(members(A, B))

    with pytest.raises(Conflict):
        view.read_route(CopySet(2, 3, frozenset({B}), frozenset({A})), 0)


def test_given_a_former_leader_that_has_followed_when_it_leaves_then_it_still_leads_no_more() -> (
    None
):
    view = leader(members(A, B, C), end=3, common=3)
    view.acknowledged(B, 2, 3, 0)

    view.read_route(members(A, version=2), 0)

    assert view.following == {B}, "C has left before it had answered"


def below(*eligible: CopyName, version: int = 2) -> CopySet:
    return CopySet(version, 2, frozenset({A}), frozenset({B, C}), frozenset(eligible))


def test_given_copies_that_may_lead_when_few_are_in_sync_then_nothing_more_is_common() -> None:
    view = leader(members(A, B), min_in_sync=2)
    view.appended(1, 0)
    view.acknowledged(B, 2, 1, 0)
    view.appended(2, 0)

    view.read_route(below(B), 0)
    view.appended(3, 0)

    assert view.is_frozen
    assert (view.common, view.judge(2)) == (1, RecordState.WAITS)
    assert view.may_read, "what was common is read on"
    assert view.lacking(2) == [B]

    view.read_route(members(A, C, learners=(B,), version=3), 0)
    assert not view.is_frozen
    view.acknowledged(C, 2, 3, 0)
    assert (view.common, view.judge(2)) == (3, RecordState.COUNTS)


def test_given_few_in_sync_and_no_copy_that_may_lead_then_the_leader_alone_is_common() -> None:
    view = leader(members(A, B), min_in_sync=2)
    view.appended(1, 0)

    view.read_route(below(), 0)

    assert (view.is_frozen, view.common) == (False, 1)
    assert view.judge(1) is RecordState.TOO_FEW


def test_given_a_minimum_that_falls_when_it_is_reached_then_the_position_moves_on() -> None:
    view = leader(members(A, B), min_in_sync=2)
    view.appended(1, 0)
    view.read_route(below(B), 0)
    assert view.common == 0

    view.min_in_sync = 1
    view.read_route(below(version=3), 0)

    assert (view.common, view.judge(1)) == (1, RecordState.COUNTS)


def test_given_a_leader_that_cannot_read_yet_then_no_copy_that_leaves_may_lead() -> None:
    view = leader(members(A, B, C), end=2)
    view.acknowledged(B, 2, 2, 0)
    assert not view.may_be_eligible(B)

    view.acknowledged(C, 2, 2, 0)
    assert view.may_be_eligible(B)
    view.lost(B, 2, 1, 0)

    assert not view.may_be_eligible(B), "it lacks what counts"
