"""Silence of leaders, as a node with copies counts it."""

from dataplane.region.copies.leader_silence import (
    REPORT_AGAIN_MS,
    SILENCE_MS,
    FollowedHere,
    LeaderSilence,
    SilentLeader,
)
from dataplane.region.copies.promises import ASK_MS

A = FollowedHere(7, 1, "dn-1")
B = FollowedHere(8, 4, "dn-1")
OTHER = FollowedHere(9, 1, "dn-2")


def due(watch: LeaderSilence, followed: list[FollowedHere], now_ms: int) -> list[SilentLeader]:
    watch.follow(followed, now_ms)
    return watch.due(now_ms)


def test_given_a_leader_that_asks_then_it_is_never_silent() -> None:
    watch = LeaderSilence()

    for now_ms in range(0, 10_000, ASK_MS):
        watch.note_request("dn-1", now_ms)
        assert due(watch, [A], now_ms + ASK_MS - 1) == []


def test_given_a_leader_that_asks_no_more_then_it_is_reported_once_a_second_with_all_regions() -> (
    None
):
    watch = LeaderSilence()
    assert due(watch, [A, B, OTHER], 0) == []
    watch.note_request("dn-2", SILENCE_MS - 1)

    assert due(watch, [A, B, OTHER], SILENCE_MS) == [SilentLeader("dn-1", SILENCE_MS, [A, B])]
    again_ms = SILENCE_MS + REPORT_AGAIN_MS
    watch.note_request("dn-2", again_ms - 1)
    assert due(watch, [A, B, OTHER], again_ms - 1) == []
    assert due(watch, [A, B, OTHER], again_ms) == [SilentLeader("dn-1", again_ms, [A, B])]


def test_given_a_region_that_is_followed_anew_then_its_leader_has_a_second() -> None:
    watch = LeaderSilence()
    due(watch, [OTHER], 0)

    assert due(watch, [A], 60_000) == []
    assert watch.silent_ms("dn-1", 60_400) == 400
    assert watch.silent_ms("dn-2", 60_400) is None, "nothing of it is followed"


def test_given_a_report_when_the_leader_is_heard_then_its_next_silence_is_reported_in_time() -> (
    None
):
    watch = LeaderSilence()
    due(watch, [A], 0)
    due(watch, [A], SILENCE_MS)
    watch.note_request("dn-1", SILENCE_MS + 10)

    assert due(watch, [A], 2 * SILENCE_MS) == []
    assert len(due(watch, [A], 2 * SILENCE_MS + 10)) == 1


def test_given_a_process_that_stood_still_then_its_leaders_are_not_silent_for_that() -> None:
    watch = LeaderSilence()
    due(watch, [A], 0)

    watch.forgive(5_000, 5_400)

    assert due(watch, [A], 5_500) == []
    assert len(due(watch, [A], 6_000)) == 1


def test_given_a_leader_that_is_heard_before_a_standstill_is_excused_then_it_is_heard_now() -> None:
    """Its request waited at the socket, and is read first when the process goes on."""
    watch = LeaderSilence()
    due(watch, [A], 0)
    watch.note_request("dn-1", 5_300)

    watch.forgive(5_000, 5_400)

    assert watch.silent_ms("dn-1", 5_400) == 0
    assert len(due(watch, [A], 5_400 + SILENCE_MS)) == 1
