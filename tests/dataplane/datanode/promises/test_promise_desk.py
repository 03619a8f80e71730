"""Answers of the copies of a node to leaders that ask for promises."""

import pytest

from dataplane.datanode.promises.promise_desk import PRUNE_MS
from metasrv_base.errors import Conflict
from metasrv_base.wire.node.promises import PromiseRequest, RefusedPromise
from tests.dataplane.datanode.promises.pair import CLUSTER, COPY, LEADER, PromisingNode
from tests.fakes.clock import FakeClock

REGION = 7


def request(**changes: object) -> PromiseRequest:
    body: dict[str, object] = {
        "cluster_id": CLUSTER,
        "leader": "dn-1",
        "node_id": "dn-2",
        "region_id": [str(REGION)],
        "epoch": [1],
        "root": [COPY.root],
        "led_root": [LEADER.root],
    }
    return PromiseRequest.model_validate(body | changes)


def follower(clock: FakeClock, epoch: int = 1) -> PromisingNode:
    node = PromisingNode("dn-2", clock)
    clock.advance(60_000)
    node.follow(REGION, epoch)
    return node


def test_given_a_copy_when_asked_then_it_promises_for_longer_than_it_says() -> None:
    clock = FakeClock()
    node = follower(clock)

    answer = node.desk.answer(request())

    assert (answer.promise_ms, answer.refused) == (2_000, [])
    assert node.given.until_ms(REGION) == clock.now_ms + 2_100


def test_given_a_promise_when_the_copy_is_promoted_then_it_gives_none_and_keeps_that_one() -> None:
    clock = FakeClock()
    node = follower(clock)
    node.desk.answer(request())
    clock.advance(500)
    node.lead(REGION, LEADER, epoch=2)

    answer = node.desk.answer(request())

    assert answer.refused == [RefusedPromise(region_id="7", reason="stale-epoch", epoch=2)]
    assert not node.given.has_ended(REGION, clock.now_ms)
    clock.advance(1_600)
    assert node.given.has_ended(REGION, clock.now_ms)


def test_given_a_copy_that_has_left_when_asked_then_it_is_not_here() -> None:
    node = follower(FakeClock())
    node.regions.leave(REGION)

    assert node.desk.answer(request()).refused == [
        RefusedPromise(region_id="7", reason="not-here", epoch=0)
    ]


def test_given_a_disk_that_was_replaced_when_asked_for_the_old_root_then_it_is_not_here() -> None:
    node = follower(FakeClock())

    answer = node.desk.answer(request(root=["/dn-2/before"]))

    assert [refused.reason for refused in answer.refused] == ["not-here"]


def test_given_regions_of_which_some_are_refused_when_asked_then_the_others_are_promised() -> None:
    node = follower(FakeClock())

    answer = node.desk.answer(
        request(
            region_id=["6", "7"],
            epoch=[1, 1],
            root=[COPY.root, COPY.root],
            led_root=[LEADER.root, LEADER.root],
        )
    )

    assert [refused.region_id for refused in answer.refused] == ["6"]
    assert node.counts == {"given": 1, "not-here": 1}


@pytest.mark.parametrize("changes", [{"cluster_id": "other"}, {"node_id": "dn-9"}])
def test_given_a_request_for_somebody_else_when_asked_then_nothing_is_promised(
    changes: dict[str, object],
) -> None:
    node = follower(FakeClock())

    with pytest.raises(Conflict, match="wrong-cluster"):
        node.desk.answer(request(**changes))
    assert len(node.given) == 0


def test_given_a_node_that_has_no_cluster_yet_when_asked_then_nothing_is_promised() -> None:
    node = follower(FakeClock())
    node.ports.membership.cluster_id = None

    with pytest.raises(Conflict, match="wrong-cluster"):
        node.desk.answer(request())


def test_given_columns_of_different_lengths_when_read_then_the_request_is_refused() -> None:
    with pytest.raises(ValueError, match="one value per region"):
        request(epoch=[1, 2])


def test_given_regions_that_are_asked_for_no_more_when_answered_then_they_are_forgotten() -> None:
    clock = FakeClock()
    node = follower(clock)
    node.desk.answer(request())
    node.follow(REGION + 1)
    clock.advance(PRUNE_MS)

    node.desk.answer(request(region_id=["8"]))

    assert len(node.given) == 1
