"""Readers as of about now: however many, the leader writes once a second for them."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.follower import Follower
from keys.commit.committer import Committer
from keys.store.memory import MemoryKv
from metasrv.service.state.closed_times import CLOSE_EVERY_MS, ClosedTimes
from tests.sim.loop import SimClock, SimLoop, run

WRITE_MS = 7


class CountedCommitter(Committer):
    """Keeps the times at which it was told to write, and what."""

    def __init__(self, clock: SimClock) -> None:
        self.clock_of_test = clock
        self.writes: list[tuple[int, int]] = []

    async def close(self, until_ms: int) -> None:
        self.writes.append((self.clock_of_test.mono_ms(), until_ms))
        await self.clock_of_test.sleep_ms(WRITE_MS)


class Scene:
    def __init__(self, loop: SimLoop) -> None:
        self.clock = SimClock(loop)
        self.committer = CountedCommitter(self.clock)
        self.follower = Follower(MemoryKv(self.clock), self.clock, deadline_ms=1_000)
        self.closed = ClosedTimes()

    async def read(self, after_ms: int) -> int:
        """A reader as of the moment it comes; the time that it waits."""
        await self.clock.sleep_ms(after_ms)
        asked_ms, began_ms = self.clock.wall_ms(), self.clock.mono_ms()
        await self.closed.close(asked_ms, self.follower, self.committer, self.clock)
        assert self.follower.log.closed_ms >= asked_ms
        return self.clock.mono_ms() - began_ms


@given(st.lists(st.integers(0, 5_000), min_size=1, max_size=200))
@pytest.mark.slow
def test_given_readers_at_any_time_then_writes_are_a_second_apart(times: list[int]) -> None:
    async def main(loop: SimLoop) -> None:
        scene = Scene(loop)

        waited = await asyncio.gather(*map(scene.read, times))

        begun = [at for at, _ in scene.committer.writes]
        apart = [after - before for before, after in pairwise(begun)]
        assert all(ms >= CLOSE_EVERY_MS for ms in apart)
        assert len(begun) <= 1 + (max(times) - min(times)) // CLOSE_EVERY_MS + 1
        assert waited[times.index(min(times))] <= WRITE_MS
        assert max(waited) <= CLOSE_EVERY_MS + 2 * WRITE_MS
        closed = [until for _, until in scene.committer.writes]
        assert closed == sorted(closed)

    run(main, 1)


def test_given_a_commit_meanwhile_then_it_closes_the_time_and_nothing_is_written() -> None:
    async def main(loop: SimLoop) -> None:
        scene = Scene(loop)
        await scene.read(0)
        reading = asyncio.gather(*(scene.read(10) for _ in range(50)))
        await scene.clock.sleep_ms(200)
        scene.follower.log.close(scene.clock.wall_ms())

        await reading

        assert len(scene.committer.writes) == 1

    run(main, 1)


def test_given_a_clock_that_went_back_then_the_time_that_was_asked_for_is_closed() -> None:
    async def main(loop: SimLoop) -> None:
        scene = Scene(loop)
        ahead_ms = scene.clock.wall_ms() + 50

        await scene.closed.close(ahead_ms, scene.follower, scene.committer, scene.clock)

        assert scene.follower.log.closed_ms == ahead_ms

    run(main, 1)
