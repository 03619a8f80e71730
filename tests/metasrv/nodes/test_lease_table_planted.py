"""Planted bugs of lease arithmetic: two holders at one instant find each within a few runs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

import pytest

from dataplane.datanode.regions.leases import RegionLeases
from keys.store.kv import LeaseId
from keys.store.memory import MemoryKv
from metasrv.leadership.election import Election, ElectionTiming, ServerIdentity, SessionLost
from metasrv.nodes.lease_table import LeaseTable
from tests.keys.store.faulty import Call, Fault, FaultyKv
from tests.metasrv.nodes.lease_times import EPOCH, LEASE_MS, NODE, REGION, TTL_MS
from tests.sim.loop import SimClock, SimLoop, run

RUNS = 200
TRAVEL_MS_MAX = 8_000  # a request or an answer may take longer than a lease allows for


class FromReceipt(RegionLeases):
    """A node that counts its lease from when the answer came."""

    received_at_ms = 0

    def granted(self, sequence: int, lease_ms: int, grants: Iterable[tuple[int, int]]) -> None:
        self._sent_ms[sequence] = self.received_at_ms
        super().granted(sequence, lease_ms, grants)


class WithoutWait(LeaseTable):
    """A new leader that takes what it has not granted for not granted."""

    @property
    def quiet_until_ms(self) -> int:
        return self.elected_at_ms


@dataclass(frozen=True)
class Parts:
    node: Callable[[], RegionLeases] = lambda: RegionLeases("i")
    book: type[LeaseTable] = LeaseTable


def overlap_ms(parts: Parts, seed: int) -> int:
    """Returns how long, in ms, a node holds its region after a leader has given it to another."""
    draw = Random(seed)
    sent, there, back = draw.randrange(1_000), *(draw.randrange(TRAVEL_MS_MAX) for _ in "ab")
    answered, received = sent + there, sent + there + back
    old = parts.book(LEASE_MS, TTL_MS, elected_at_ms=-1_000_000)
    leases = parts.node()
    leases.sent(1, sent)
    old.granted(NODE, [str(REGION)], answered)
    if isinstance(leases, FromReceipt):
        leases.received_at_ms = received
    leases.granted(1, LEASE_MS, [(REGION, EPOCH)])
    elected = answered + draw.randrange(TTL_MS)  # the old leader died after it had answered
    new = parts.book(LEASE_MS, TTL_MS, elected_at_ms=elected)
    free = min(book.free_at_ms(NODE, [str(REGION)]) for book in (old, new))
    return (leases.deadline_ms(REGION, EPOCH) or 0) - free


def test_given_no_bug_when_leases_are_granted_then_nobody_holds_what_is_given_away() -> None:
    assert max(overlap_ms(Parts(), seed) for seed in range(RUNS)) <= 0


@pytest.mark.parametrize(
    ("bug", "parts"),
    [
        ("lease counted from receipt", Parts(node=lambda: FromReceipt("i"))),
        ("wait W skipped after an election", Parts(book=WithoutWait)),
    ],
)
def test_given_a_planted_bug_when_leases_are_granted_then_an_overlap_finds_it(
    bug: str, parts: Parts, capsys: pytest.CaptureFixture[str]
) -> None:
    found = next((seed for seed in range(RUNS) if overlap_ms(parts, seed) > 0), None)

    assert found is not None
    with capsys.disabled():
        print(f"\n{bug}: run {found + 1}: two holders for {overlap_ms(parts, found)} ms", end="")


# ---- the seat of the leader


class FromAnswer(Election):
    """A server that counts its own lease from when the renewal was answered."""

    def _end_of(self, sent_ms: int) -> int:
        return super()._end_of(self._clock.mono_ms())


def believes_too_long(make: type[Election], seed: int) -> bool:
    """Whether a server, its store slow and then silent, ever leads without its lease."""

    async def main(loop: SimLoop) -> bool:
        clock, draw = SimClock(loop), Random(seed)
        sound = MemoryKv(clock)
        silent_at_ms = draw.randrange(3_000, 9_000)

        class Slow(FaultyKv):
            async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
                alive = await super().keep_alive(lease, deadline_ms=deadline_ms)
                await clock.sleep_ms(draw.randrange(deadline_ms))
                return alive

        async def script(_call: Call) -> Fault:
            return Fault.NEVER_SENT if clock.mono_ms() > silent_at_ms else Fault.NONE

        kv = Slow(sound, script)
        timing = ElectionTiming(ttl_ms=TTL_MS, keep_alive_ms=1_600, deadline_ms=2_000)
        election = make(kv, clock, ServerIdentity("a", "http://a", "0"), timing)

        async def stand() -> None:
            session = await election.open_session()
            try:
                await election.keep_alive(session)
            except SessionLost:
                return

        loop.spawn("a", stand())
        await clock.sleep_ms(10)
        while clock.mono_ms() < 20_000:
            await clock.sleep_ms(50)
            sound.tick()
            if election.is_valid() and not sound.dump():
                return True
        return False

    return run(main, seed)


def test_given_a_slow_store_when_renewing_then_no_server_believes_too_long() -> None:
    assert not any(believes_too_long(Election, seed) for seed in range(20))


def test_given_a_planted_bug_when_renewing_then_a_server_believes_too_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = next((seed for seed in range(50) if believes_too_long(FromAnswer, seed)), None)

    assert found is not None
    with capsys.disabled():
        print(
            f"\nleader's lease counted from the answer: run {found + 1}: leads without it", end=""
        )
