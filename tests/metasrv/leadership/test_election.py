"""Election on a store in memory and in virtual time: one leader at most, never past its own
lease."""

import asyncio

import pytest

from keys.model.cluster import LeaderKey, LeaderRecord
from keys.store.kv import Compare, Kv, LeaseId, Put, Request
from keys.store.memory import MemoryKv
from metasrv.leadership.election import (
    Election,
    ElectionSession,
    ElectionTiming,
    ServerIdentity,
    SessionLost,
    win,
)
from metasrv_base.errors import Unknown
from tests.keys.store.faulty import Call, Fault, FaultyKv
from tests.sim.loop import SimClock, SimLoop, run

TIMING = ElectionTiming(ttl_ms=5_000, keep_alive_ms=1_600, deadline_ms=2_000)
ANSWER_MS = 5


def deaf(_leader: LeaderRecord | None) -> None:
    """Nobody asks who leads."""


class Server:
    """One candidate in the loop: how often it won, and how it ended."""

    def __init__(self, name: str, kv: Kv, clock: SimClock) -> None:
        self.name = name
        self.clock = clock
        self.election = Election(kv, clock, ServerIdentity(name, f"http://{name}", "0"), TIMING)
        self.fence: Compare | None = None
        self.lost_at_ms: int | None = None

    async def stand(self) -> None:
        session = await self.election.open_session()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.election.keep_alive(session))
                tasks.create_task(self._win(session))
        except* SessionLost:
            self.lost_at_ms = self.clock.mono_ms()

    async def _win(self, session: ElectionSession) -> None:
        self.fence = await win(self.election, session, self.clock, deaf)


def test_given_two_candidates_when_standing_then_exactly_one_wins() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = MemoryKv(clock)
        servers = [Server(name, kv, clock) for name in ("a", "b")]
        for server in servers:
            loop.spawn(server.name, server.stand())

        await clock.sleep_ms(10_000)

        winners = [server for server in servers if server.fence is not None]
        assert len(winners) == 1
        assert winners[0].election.is_valid()

    run(main, seed=1)


def test_given_a_leader_that_dies_when_its_lease_ends_then_another_wins_at_a_higher_term() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = MemoryKv(clock)
        first, second = Server("a", kv, clock), Server("b", kv, clock)
        loop.spawn("a", first.stand())
        await clock.sleep_ms(1_000)
        loop.spawn("b", second.stand())
        await clock.sleep_ms(3_000)
        assert second.fence is None

        loop.kill("a")
        await clock.sleep_ms(8_000)

        assert first.fence is not None
        assert second.fence is not None
        assert second.fence.mod_revision > first.fence.mod_revision

    run(main, seed=2)


def test_given_a_leader_paused_beyond_its_lease_when_it_wakes_then_it_is_not_valid() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = MemoryKv(clock)
        first, second = Server("a", kv, clock), Server("b", kv, clock)
        loop.spawn("a", first.stand())
        await clock.sleep_ms(1_000)
        loop.spawn("b", second.stand())

        loop.pause("a", 30_000)
        await clock.sleep_ms(30_001)

        assert not first.election.is_valid()
        assert second.election.is_valid()
        await clock.sleep_ms(100)
        assert first.lost_at_ms is not None

    run(main, seed=3)


def test_given_a_silent_store_when_renewing_then_it_steps_down_before_the_lease_can_end() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        sound = MemoryKv(clock)
        silent = False

        async def script(_call: Call) -> Fault:
            return Fault.NEVER_SENT if silent else Fault.NONE

        server = Server("a", FaultyKv(sound, script), clock)
        loop.spawn("a", server.stand())
        await clock.sleep_ms(2_000)
        renewed_ms = 1_600  # the last one that can have been answered

        silent = True
        await clock.sleep_ms(10_000)

        assert server.lost_at_ms is not None
        assert server.lost_at_ms < renewed_ms + TIMING.ttl_ms

    run(main, seed=4)


class OneFrozen(MemoryKv):
    """Three members that are asked in turn: one takes every call and answers none."""

    def __init__(self, clock: SimClock, first: int) -> None:
        super().__init__(clock)
        self.sim = clock
        self.calls = first

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        self.calls += 1
        answers = self.calls % 3 != 0 and deadline_ms > ANSWER_MS
        await self.sim.sleep_ms(ANSWER_MS if answers else deadline_ms)
        if not answers:
            raise Unknown
        return await super().keep_alive(lease, deadline_ms=deadline_ms)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_given_a_member_that_froze_when_renewing_by_turns_then_the_leader_stays(
    first: int,
) -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        server = Server("a", OneFrozen(clock, first), clock)
        loop.spawn("a", server.stand())

        await clock.sleep_ms(120_000)

        assert server.lost_at_ms is None
        assert server.election.is_valid()

    run(main, seed=7)


@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.NEVER_SENT])
def test_given_an_unknown_campaign_when_settled_then_the_fence_is_the_winning_revision(
    fault: Fault,
) -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        sound = MemoryKv(clock)
        faults = iter([fault])

        async def script(call: Call) -> Fault:
            campaign = call.request is not None and bool(call.request.compares)
            return next(faults, Fault.NONE) if campaign else Fault.NONE

        server = Server("a", FaultyKv(sound, script), clock)
        loop.spawn("a", server.stand())

        await clock.sleep_ms(2_000)

        (seat,) = [item for item in sound.dump() if item.key == bytes(LeaderKey())]
        assert server.fence == Compare(bytes(LeaderKey()), seat.mod_revision)

    run(main, seed=5)


def test_given_a_leader_when_it_resigns_then_the_next_wins_without_waiting_for_the_lease() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = MemoryKv(clock)
        first, second = Server("a", kv, clock), Server("b", kv, clock)
        session = await first.election.open_session()
        fence = await win(first.election, session, clock, deaf)
        loop.spawn("b", second.stand())
        await clock.sleep_ms(700)
        assert second.fence is None

        await first.election.resign(session)
        await clock.sleep_ms(700)

        assert second.fence is not None
        assert second.fence.mod_revision > fence.mod_revision

    run(main, seed=6)


def test_given_a_newer_server_in_the_seat_then_it_is_heard_and_not_campaigned_against() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = MemoryKv(clock)
        newer = b'{"format":9,"server":"b","url":"http://b","lease":"7","since":1}'
        await kv.txn(Request(writes=(Put(bytes(LeaderKey()), newer),)), deadline_ms=1_000)
        one = Server("a", kv, clock)
        session = await one.election.open_session()

        seen = await one.election.look()

        assert seen is not None
        assert (seen.server, seen.url) == ("b", "http://b")
        assert await one.election.campaign(session) is None

    run(main, seed=1)
