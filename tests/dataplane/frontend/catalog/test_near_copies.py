"""Copies near by answer reads of a declared age, spread over them, and the leader what they do
not."""

from collections import Counter

from dataplane.frontend.catalog.catalog import CopyNode
from dataplane.frontend.catalog.near_copies import ASKED_MAX, REST_S, NearCopies
from metasrv_base.errors import NotFound, Unavailable, Unknown
from tests.fakes.chance import SeededRng


def place(number: int, zone: str, *, is_leader: bool = False) -> CopyNode:
    return CopyNode(f"dn-{number}", f"http://dn-{number}", zone, is_leader)


LEADER, NEAR, FAR = place(1, "z1", is_leader=True), place(2, "z2"), place(3, "z3")
PLACES = (LEADER, NEAR, FAR)


def test_given_a_copy_in_its_zone_when_ordered_then_it_is_the_first() -> None:
    near, rng = NearCopies("z2"), SeededRng()

    firsts = {near.order(PLACES, 0.0, rng)[0] for _ in range(50)}

    assert firsts == {NEAR}


def test_given_copies_in_one_zone_when_ordered_then_reads_are_spread_over_them() -> None:
    near, rng = NearCopies("elsewhere"), SeededRng()

    firsts = Counter(near.order(PLACES, 0.0, rng)[0] for _ in range(3_000))

    assert min(firsts[each] for each in PLACES) > 800
    assert len(near.order(PLACES, 0.0, rng)) == ASKED_MAX


def test_given_a_node_that_does_not_answer_then_it_rests_and_is_asked_again_later() -> None:
    near, rng = NearCopies("z2"), SeededRng()

    near.failed(NEAR, Unknown(), now=10.0)

    assert NEAR not in near.order(PLACES, 10.0 + REST_S - 0.1, rng)
    assert near.order(PLACES, 10.0 + REST_S, rng)[0] == NEAR
    near.failed(NEAR, TimeoutError(), now=20.0)
    assert NEAR not in near.order(PLACES, 20.0, rng)


def test_given_a_copy_whose_rows_are_older_then_it_is_asked_at_the_next_read() -> None:
    counts = Counter[str]()
    near, rng = NearCopies("z2", lambda outcome: counts.update([outcome])), SeededRng()

    near.failed(NEAR, Unavailable("not-ready", max_lag_ms=100, lag_ms=700), now=10.0)
    near.failed(NEAR, NotFound(what="region", name="7"), now=10.0)
    near.answered(NEAR)
    near.answered(LEADER)

    assert near.order(PLACES, 10.0, rng)[0] == NEAR
    assert counts == {"too-old": 1, "failed": 1, "copy": 1, "leader": 1}
