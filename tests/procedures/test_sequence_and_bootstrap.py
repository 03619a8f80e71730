"""Ids that are never given twice, and a cluster that is made once."""

import pytest

from keys.bootstrap import bootstrap_request
from keys.cluster import LeaderKey
from keys.committer import Committer
from keys.kv import Compare
from keys.line import read_line
from keys.sequence import BLOCK, Sequences
from tests.procedures.line import DEADLINE_MS, Store, World, elect, lost_answer
from tests.sim.loop import SimClock, SimLoop, run


@pytest.mark.case("greptime 65", "greptime 88")
def test_given_leaders_that_change_then_no_id_is_given_twice() -> None:
    async def main(loop: SimLoop) -> None:
        store = (await World.made(loop)).store
        given: list[int] = []
        for term in range(5):
            fence = await elect(store, f"meta-{term}")
            line = await read_line(store, fence, deadline_ms=DEADLINE_MS)
            committer = Committer(store, store.clock, line, deadline_ms=DEADLINE_MS)
            node = f"leader-{term}"
            loop.spawn(node, committer.run())
            sequences = Sequences(store, committer, DEADLINE_MS)
            store.faults = [lost_answer] if term % 2 else []
            wanted = BLOCK + 3 if term == 2 else 7
            asked = [loop.spawn(node, sequences.next("table_id")) for _ in range(wanted)]
            given += [await one for one in asked]
            loop.kill(node)

        assert len(set(given)) == len(given)
        assert min(given) == 1024
        assert given == sorted(given)

    run(main, 1)


def test_given_a_prefix_that_has_a_cluster_when_bootstrapped_again_then_nothing_happens() -> None:
    async def main(loop: SimLoop) -> None:
        store = (await World.made(loop)).store
        before = store.dump()
        fence = Compare(bytes(LeaderKey()), next(i.mod_revision for i in before if b"lea" in i.key))

        again = await store.apply(bootstrap_request(fence, "other", 1))

        assert not again.succeeded
        assert store.dump() == before

    run(main, 1)


def test_given_a_lost_fence_when_bootstrapped_then_nothing_happens() -> None:
    async def main(loop: SimLoop) -> None:
        store = Store(SimClock(loop))
        fence = await elect(store, "meta-1")
        await elect(store, "meta-2")

        assert not (await store.apply(bootstrap_request(fence, "c", 1))).succeeded

    run(main, 1)
