"""Ids that are never given twice, and a cluster that is made once."""

import asyncio

import pytest

from keys.commit.bootstrap import bootstrap_request
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.sequence import BLOCK, Sequences
from keys.model.cluster import LeaderKey
from keys.store.kv import Compare
from metasrv_base.errors import Unavailable
from tests.keys.commit.leading_committer import (
    DEADLINE_MS,
    Store,
    World,
    elect,
    led,
    lost_answer,
    never_sent,
)
from tests.sim.loop import SimClock, SimLoop, run


@pytest.mark.case("greptime 65", "greptime 88")
def test_given_leaders_that_change_then_no_id_is_given_twice() -> None:
    async def main(loop: SimLoop) -> None:
        store = (await World.made(loop)).store
        given: list[int] = []
        for term in range(5):
            fence = await elect(store, f"meta-{term}")
            line = await read_log_head(store, fence, deadline_ms=DEADLINE_MS)
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


def test_given_many_callers_at_once_when_ids_run_out_then_each_block_is_reserved_once() -> None:
    async def scenario(world: World) -> None:
        sequences = Sequences(world.store, world.committer, DEADLINE_MS)
        before = len(world.store.sent)

        given = await asyncio.gather(*(sequences.next("table_id") for _ in range(3 * BLOCK)))

        assert sorted(given) == list(range(1024, 1024 + 3 * BLOCK))
        assert len(world.store.sent) - before == 3

    led(scenario)


def test_given_a_store_that_is_away_when_many_ask_then_one_is_sent_and_all_hear_of_it() -> None:
    async def scenario(world: World) -> None:
        sequences = Sequences(world.store, world.committer, DEADLINE_MS)
        world.store.faults = [never_sent]
        before = len(world.store.sent)

        asked = [sequences.next("table_id") for _ in range(5)]
        answers = await asyncio.gather(*asked, return_exceptions=True)

        assert [type(answer) for answer in answers] == [Unavailable] * 5
        assert len(world.store.sent) - before == 1
        assert await sequences.next("table_id") == 1024

    led(scenario)


def test_given_a_caller_that_reserves_for_all_when_it_goes_away_then_another_goes_on() -> None:
    async def scenario(world: World) -> None:
        sequences = Sequences(world.store, world.committer, DEADLINE_MS)
        first = world.loop.spawn("leader", sequences.next("table_id"))
        second = world.loop.spawn("leader", sequences.next("table_id"))
        await asyncio.sleep(0)

        first.cancel()

        assert await second >= 1024

    led(scenario)


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
