"""Leaders ask other nodes for promises: together, in time, and without waiting for the silent."""

import asyncio

import pytest
import structlog

from dataplane.datanode.promises import promise_asker
from dataplane.region.copies.leader_view import CopySet
from dataplane.region.copies.promises import ASK_MS
from metasrv_base.wire.node.promises import PromiseAnswer, PromiseRequest
from tests.dataplane.datanode.promises.pair import COPY, LEADER, THIRD, Peers, PromisingNode
from tests.fakes.clock import FakeClock
from tests.sim.loop import SimClock, SimLoop, run

REGION = 7


def pair(clock: FakeClock, regions: int = 1) -> tuple[PromisingNode, PromisingNode, Peers]:
    leader, copy = PromisingNode("dn-1", clock), PromisingNode("dn-2", clock)
    for region_id in range(REGION, REGION + regions):
        leader.lead(region_id, COPY)
        copy.follow(region_id)
    return leader, copy, Peers({"http://dn-2": copy})


def ask(node: PromisingNode, peers: Peers) -> None:
    asker = node.asker(peers)
    for question in asker.due():
        asyncio.run(asker.ask(question))


def test_given_regions_that_two_nodes_share_when_asked_then_one_request_has_all_of_them() -> None:
    clock = FakeClock()
    leader, copy, peers = pair(clock, regions=3)

    ask(leader, peers)

    (request,) = peers.requests
    assert request.region_id == ["7", "8", "9"]
    assert request.root == [COPY.root] * 3
    assert leader.counts == {"received": 3, "refused": 0}
    assert copy.counts == {"given": 3}


def test_given_an_answer_that_travels_when_received_then_it_counts_from_before_it_was_asked() -> (
    None
):
    clock = FakeClock(now_ms=50_000)
    leader, copy, peers = pair(clock)
    peers.travel_ms = 400

    ask(leader, peers)

    assert clock.now_ms == 50_800
    assert leader.received.deadline_ms(REGION, 1, [COPY]) == 50_000 + 1_998
    assert copy.given.until_ms(REGION) == 50_400 + 2_100


def test_given_more_regions_than_one_request_holds_when_asked_then_in_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promise_asker, "PROMISE_REGIONS_MAX", 2)
    clock = FakeClock()
    leader, _copy, peers = pair(clock, regions=5)
    peers.travel_ms = 10

    ask(leader, peers)

    assert [request.region_id for request in peers.requests] == [["7", "8"], ["9", "10"], ["11"]]
    deadlines = [leader.received.deadline_ms(region, 1, [COPY]) for region in (7, 9, 11)]
    assert [(deadline or 0) - (deadlines[0] or 0) for deadline in deadlines] == [0, 20, 40]


def test_given_a_copy_that_joins_when_asked_then_it_is_asked_too_and_a_learner_is_not() -> None:
    clock = FakeClock()
    leader, _copy, peers = pair(clock)
    view = leader.lead(REGION, COPY, THIRD)
    peers.nodes["http://dn-3"] = PromisingNode("dn-3", clock)
    assert {question.node for question in leader.asker(peers).due()} == {"dn-2", "dn-3"}

    view.read_route(CopySet(2, 1, frozenset({LEADER, COPY}), frozenset({THIRD})), 0)
    assert {question.node for question in leader.asker(peers).due()} == {"dn-2"}

    view.acknowledged(THIRD, 1, 0, 0)
    view.join(THIRD, 0)
    assert {question.node for question in leader.asker(peers).due()} == {"dn-2", "dn-3"}


def test_given_a_copy_of_a_higher_epoch_when_asked_then_its_refusal_is_no_promise() -> None:
    clock = FakeClock()
    leader, copy, peers = pair(clock)
    copy.lead(REGION, LEADER, epoch=2)

    ask(leader, peers)

    assert leader.received.deadline_ms(REGION, 1, [COPY]) is None
    assert leader.counts["refused"] == copy.counts["stale-epoch"] == 1


def test_given_a_node_that_is_silent_when_asked_then_its_silence_and_its_end_are_logged_once() -> (
    None
):
    clock = FakeClock()
    leader, _copy, peers = pair(clock)
    asker = leader.asker(peers)
    with structlog.testing.capture_logs() as logs:
        for is_cut in (True, True, False, False):
            peers.is_cut = is_cut
            for question in asker.due():
                asyncio.run(asker.ask(question))

    assert [line["event"] for line in logs] == ["promises_unanswered", "promises_answered"]
    assert leader.counts["unanswered"] == 2


def test_given_a_region_that_leads_here_no_more_when_asked_then_its_promises_are_forgotten() -> (
    None
):
    clock = FakeClock()
    leader, _copy, peers = pair(clock)
    ask(leader, peers)
    leader.regions.leave(REGION)

    assert leader.asker(peers).due() == []
    assert leader.received.deadline_ms(REGION, 1, [COPY]) is None


def test_given_a_node_that_answers_nothing_when_asking_runs_then_others_are_asked_in_time() -> None:
    async def main(loop: SimLoop) -> tuple[int, list[int]]:
        clock = SimClock(loop)
        leader, copy = PromisingNode("dn-1", clock), PromisingNode("dn-2", clock)
        third = PromisingNode("dn-3", clock)
        leader.lead(REGION, COPY)
        leader.lead(REGION + 1, THIRD)
        copy.follow(REGION)
        third.follow(REGION + 1)
        answers, silent = Peers({"http://dn-2": copy}), Peers({"http://dn-3": third}, is_cut=True)

        class Both(Peers):
            async def ask(
                self, address: str, request: PromiseRequest, deadline_ms: int
            ) -> PromiseAnswer:
                peers = answers if address in answers.nodes else silent
                return await peers.ask(address, request, deadline_ms)

        began_ms = clock.mono_ms()
        asker = leader.asker(Both({}))
        loop.spawn("dn-1", asker.run())
        left_ms = []
        for _ in range(40):
            await clock.sleep_ms(250)
            until_ms = leader.received.deadline_ms(REGION, 1, [COPY])
            left_ms.append((until_ms or 0) - clock.mono_ms())
        loop.kill("dn-1")
        elapsed_ms = clock.mono_ms() - began_ms
        assert len(silent.requests) in range(elapsed_ms // 1_000 - 1, elapsed_ms // 900 + 1)
        return len(answers.requests), left_ms

    asked, left_ms = run(main, 1)

    assert asked in range(19, 22), "twice a second for 10 s"
    assert min(left_ms) >= 1_998 - ASK_MS - 250
