"""Requests for promises tell copies what is common, in answer to a time of their own (P4.6)."""

import asyncio

from dataplane.region.copies.staleness import CommonAt
from tests.dataplane.datanode.promises.pair import COPY, Peers, PromisingNode
from tests.fakes.clock import FakeClock

REGION = 7


class Shared:
    """Two nodes that share a region, in which 12 is common."""

    def __init__(self) -> None:
        self.clock = FakeClock(now_ms=50_000)
        self.leader, self.copy = (PromisingNode(f"dn-{n}", self.clock) for n in (1, 2))
        self.leader.lead(REGION, COPY)
        self.copy.follow(REGION)
        self.leader.positions.common[REGION] = 12
        self.peers = Peers({"http://dn-2": self.copy})
        self.asker = self.leader.asker(self.peers)

    def ask(self) -> None:
        for question in self.asker.due():
            asyncio.run(self.asker.ask(question))


def test_given_the_first_request_when_asked_then_no_position_is_told() -> None:
    shared = Shared()

    shared.ask()

    assert shared.peers.requests[0].common == []
    assert shared.copy.positions.told == []


def test_given_a_request_that_travels_when_it_arrives_then_it_is_of_the_answer_before() -> None:
    shared = Shared()
    shared.ask()
    shared.clock.advance(500)
    shared.peers.travel_ms = 3_000

    shared.ask()

    told = CommonAt(1, 12, 50_000)
    assert shared.copy.positions.told == [(REGION, COPY.root, told)], "not of its arrival"
    shared.peers.travel_ms = 0
    shared.ask()
    assert shared.copy.positions.told[-1][2].as_of_ms == 53_500


def test_given_a_leader_that_may_not_read_when_asked_then_it_tells_no_position() -> None:
    shared = Shared()
    shared.ask()
    shared.leader.positions.common.clear()

    shared.ask()

    assert shared.peers.requests[1].common == [None]
    assert shared.copy.positions.told == []


def test_given_a_copy_that_started_again_when_told_a_time_of_before_then_it_takes_no_position() -> (
    None
):
    shared = Shared()
    shared.ask()
    again = shared.peers.requests[0].model_copy(
        update={
            "common": [12],
            "answered": shared.copy.desk.answer(shared.peers.requests[0]).answered,
        }
    )
    assert again.answered is not None
    of_before = again.answered.model_copy(update={"incarnation": "before"})
    of_later = again.answered.model_copy(update={"mono_ms": 50_001})

    for answered in (of_before, of_later):
        shared.copy.desk.answer(again.model_copy(update={"answered": answered}))
    assert shared.copy.positions.told == []

    shared.copy.desk.answer(again)
    assert [told.as_of_ms for _, _, told in shared.copy.positions.told] == [50_000]


def test_given_a_copy_that_refuses_the_promise_when_asked_then_it_takes_no_position() -> None:
    shared = Shared()
    shared.ask()
    shared.copy.follow(REGION, epoch=2)

    shared.ask()

    assert shared.copy.counts["stale-epoch"] == 1
    assert shared.copy.positions.told == []
