"""Promises as a leader and as a copy count them (docs/protocols.md P4.5)."""

import pytest

from dataplane.region.copies.leader_view import CopyName
from dataplane.region.copies.promises import (
    ASK_MS,
    PROMISE_MS,
    CopyHere,
    GivenPromises,
    PromiseRefusal,
    ReceivedPromises,
    kept_ms,
    refusal,
)
from metasrv_base.lease import usable_ms

REGION, EPOCH = 7, 3
B, C = CopyName("dn-2", "/b"), CopyName("dn-3", "/c")
LEADER, ANOTHER = CopyName("dn-1", "/a"), CopyName("dn-9", "/i")
STARTED_MS = -10_000


def given(started_ms: int = STARTED_MS) -> GivenPromises:
    return GivenPromises(started_ms)


def received(*promises: tuple[CopyName, int]) -> ReceivedPromises:
    """Promises of copies, each with the time before which it was asked for."""
    book = ReceivedPromises()
    for copy, asked_ms in promises:
        book.received(REGION, EPOCH, copy, asked_ms)
    return book


def test_the_numbers_are_the_published_ones() -> None:
    assert (PROMISE_MS, usable_ms(PROMISE_MS), kept_ms(PROMISE_MS)) == (2_000, 1_998, 2_100)
    assert usable_ms(PROMISE_MS) > 3 * ASK_MS, "two answers may be lost"


# ---- the leader


def test_given_an_answer_that_is_late_then_the_promise_is_counted_from_before_it_was_asked() -> (
    None
):
    book = received((B, 1_000))

    assert book.deadline_ms(REGION, EPOCH, [B]) == 2_998
    assert book.are_valid(REGION, EPOCH, [B], 2_997)
    assert not book.are_valid(REGION, EPOCH, [B], 2_998), "at its deadline it has ended"


def test_given_an_answer_that_comes_after_its_promise_has_ended_then_it_is_worth_nothing() -> None:
    book = received((B, 0))

    assert not book.are_valid(REGION, EPOCH, [B], 5_000)


def test_given_answers_that_overtake_each_other_then_the_latest_request_counts() -> None:
    book = received((B, 1_000), (B, 400))

    assert book.deadline_ms(REGION, EPOCH, [B]) == 2_998


def test_given_promises_of_some_then_nothing_is_read_before_every_copy_has_promised() -> None:
    book = received((B, 1_000))

    assert not book.are_valid(REGION, EPOCH, [B, C], 1_001)
    assert book.deadline_ms(REGION, EPOCH, [B, C]) is None

    book.received(REGION, EPOCH, C, 500)

    assert book.are_valid(REGION, EPOCH, [B, C], 1_001)
    assert book.deadline_ms(REGION, EPOCH, [B, C]) == 2_498, "that of the first that ends"


def test_given_a_copy_that_joins_when_it_is_required_then_it_has_to_promise_too() -> None:
    book = received((B, 1_000))

    assert book.are_valid(REGION, EPOCH, [B], 1_500)
    assert not book.are_valid(REGION, EPOCH, [B, C], 1_500)


def test_given_a_promise_of_another_epoch_region_or_root_then_it_counts_for_this_one_not() -> None:
    book = received((B, 1_000))

    assert not book.are_valid(REGION, EPOCH + 1, [B], 1_500)
    assert not book.are_valid(REGION + 1, EPOCH, [B], 1_500)
    assert not book.are_valid(REGION, EPOCH, [CopyName(B.node, "/new")], 1_500)


def test_given_a_leader_that_was_suspended_when_it_goes_on_then_its_promises_have_ended() -> None:
    book = received((B, 1_000))
    suspended_ms = 3_000

    assert not book.are_valid(REGION, EPOCH, [B], 1_010 + suspended_ms)


def test_given_a_region_that_leads_here_no_more_then_its_promises_are_forgotten() -> None:
    book = received((B, 1_000))
    book.keep([(REGION, EPOCH), (REGION + 1, EPOCH)])
    assert book.deadline_ms(REGION, EPOCH, [B]) == 2_998

    book.keep([(REGION, EPOCH + 1)])

    assert book.deadline_ms(REGION, EPOCH, [B]) is None


@pytest.mark.parametrize(("promise_ms", "until_ms"), [(1_000, 1_999), (60_000, 2_998)])
def test_given_a_promise_of_another_length_then_the_shorter_counts(
    promise_ms: int, until_ms: int
) -> None:
    book = ReceivedPromises()
    book.received(REGION, EPOCH, B, 1_000, promise_ms)

    assert book.deadline_ms(REGION, EPOCH, [B]) == until_ms


def test_given_no_other_copy_when_promises_are_judged_then_the_caller_is_at_fault() -> None:
    with pytest.raises(AssertionError, match="under its lease"):
        received().are_valid(REGION, EPOCH, [], 0)


# ---- the copy


def test_given_a_promise_when_promoted_then_nothing_is_served_before_it_has_ended() -> None:
    book = given()
    book.give(REGION, LEADER, 1_000)

    assert book.until_ms(REGION) == 3_100
    assert not book.has_ended(REGION, 3_099)
    assert book.has_ended(REGION, 3_100)


def test_given_no_promise_when_promoted_then_a_copy_that_has_run_for_long_serves_at_once() -> None:
    assert given().has_ended(REGION, 0)


def test_given_a_restart_when_promoted_then_the_copy_waits_as_if_it_had_promised_just_before() -> (
    None
):
    book = given(started_ms=500)

    assert not book.has_ended(REGION, 2_599)
    assert book.has_ended(REGION, 2_600)


def test_given_an_earlier_promise_that_is_given_late_then_no_later_one_is_shortened() -> None:
    book = given()
    book.give(REGION, LEADER, 1_000)
    book.give(REGION, LEADER, 900)

    assert book.until_ms(REGION) == 3_100


def test_given_a_former_leader_that_follows_then_its_promise_is_over_and_no_other() -> None:
    book = given()
    book.give(REGION, LEADER, 1_000)
    book.give(REGION, ANOTHER, 1_500)

    assert book.until_ms(REGION, [LEADER]) == 3_600, "the other one may read on"
    assert book.until_ms(REGION, [ANOTHER]) == 3_100
    assert book.has_ended(REGION, 1_500, [LEADER, ANOTHER])
    assert not book.has_ended(REGION, 1_500, [CopyName(LEADER.node, "/another")]), "another disk"


def test_given_a_restart_when_a_copy_follows_then_the_promise_of_before_it_lasts() -> None:
    book = given(started_ms=500)
    book.give(REGION, LEADER, 600)

    assert book.until_ms(REGION, [LEADER]) == 2_600


def test_given_promises_that_have_ended_when_pruned_then_those_that_last_are_kept() -> None:
    book = given()
    book.give(1, LEADER, 0)
    book.give(2, LEADER, 1_000)

    book.prune(2_100)

    assert book.until_ms(1) == STARTED_MS + 2_100
    assert book.until_ms(2) == 3_100
    assert len(book) == 1


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        (CopyHere("/b", EPOCH, is_leader=False), None),
        (CopyHere("/b", EPOCH - 1, is_leader=False), None),
        (CopyHere("/b", EPOCH + 1, is_leader=False), PromiseRefusal.STALE_EPOCH),
        (CopyHere("/b", EPOCH + 1, is_leader=True), PromiseRefusal.STALE_EPOCH),
        (CopyHere("/b", EPOCH, is_leader=True), PromiseRefusal.NOT_HERE),
        (CopyHere("/b", EPOCH - 1, is_leader=True), PromiseRefusal.NOT_HERE),
        (CopyHere("/new", EPOCH, is_leader=False), PromiseRefusal.NOT_HERE),
        (None, PromiseRefusal.NOT_HERE),
    ],
    ids=[
        "it follows that leader",
        "it has not heard of that epoch yet",
        "it follows a higher epoch",
        "it was promoted",
        "it leads at that epoch itself",
        "it led before and has not heard of its end",
        "its disk was replaced",
        "it has left the region",
    ],
)
def test_given_a_copy_when_it_is_asked_then_it_promises_or_says_why_not(
    copy: CopyHere | None, reason: PromiseRefusal | None
) -> None:
    assert refusal(copy, "/b", EPOCH) is reason
