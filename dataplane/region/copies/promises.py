"""Promises between the copies of a region, under which its leader serves reads. Pure.

P4.5 of docs/protocols.md; the model has each rule under a name (tests/model/copies/rules.py). To
keep a promise is to serve nothing as a promoted leader. Times are milliseconds of CLOCK_BOOTTIME,
which goes on while a machine is suspended, each of the node that counts.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import StrEnum

from dataplane.region.copies.leader_view import CopyName
from metasrv_base.lease import usable_ms

PROMISE_MS = 2_000
ASK_MS = 500
"""The interval at which a leader asks each node for the promises of all regions they share."""
DRIFT_PERCENT = 5
"""The most by which clocks of two nodes may differ in rate (docs/guarantees.md)."""

GAP_MS_MAX = 2 * ASK_MS
"""A longer time between two readings was a standstill. There is a reading every ASK_MS while the
process runs, since that is the pace at which it asks its copies for promises."""
STANDSTILL_MS = 100
"""The time that a standstill counts: a process that stands still again and again goes on."""


def kept_ms(promise_ms: int) -> int:
    """The time for which a copy keeps a promise, so that it ends at the leader first."""
    return promise_ms + -(-promise_ms * DRIFT_PERCENT // 100)


class PromiseRefusal(StrEnum):
    """A reason why a copy gives no promise."""

    NOT_HERE = "not-here"
    """The node has no such copy: none of that root, or the region leads here."""
    STALE_EPOCH = "stale-epoch"
    """The copy has followed, or leads, a higher epoch."""


@dataclass(frozen=True, slots=True)
class CopyHere:
    """A copy of a region on the node that is asked."""

    root: str
    epoch: int
    """The highest that it has followed or led, or was ordered to."""
    is_leader: bool
    """From the moment at which the order to lead is carried out, before anything is opened."""


def refusal(copy: CopyHere | None, root: str, epoch: int) -> PromiseRefusal | None:
    """Judges a request of the leader of *epoch* for the promise of the copy with that root. None:
    the copy promises. A copy that has not heard of that epoch yet promises too.

    *copy* is None on a node that has no copy of the region, or whose copy has left it.
    """
    if copy is None or copy.root != root:
        return PromiseRefusal.NOT_HERE
    if copy.epoch > epoch:
        return PromiseRefusal.STALE_EPOCH
    return PromiseRefusal.NOT_HERE if copy.is_leader else None


@dataclass(slots=True)
class GivenPromises:
    """The promises that the copies of one node have given, by region and by the copy that led. They
    are in memory alone, so each copy of a node that starts counts as having promised at the
    start."""

    started_ms: int
    """A time of this process before which it has given no promise."""
    _until_ms: dict[int, dict[CopyName, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._until_ms)

    def give(self, region: int, leader: CopyName, now_ms: int) -> None:
        """Call before the answer is sent. A promise never ends earlier because of a later one.
        *leader*: the copy that leads."""
        until_ms = now_ms + kept_ms(PROMISE_MS)
        leaders = self._until_ms.setdefault(region, {})
        leaders[leader] = max(until_ms, leaders.get(leader, until_ms))

    def until_ms(self, region: int, following: Collection[CopyName] = ()) -> int:
        """The time before which a copy of that region serves nothing as its leader.

        *following*: copies that follow it at its own epoch. What one of these was promised while it
        led is over: it answers no read of that time any more, and leads again only at a higher
        epoch. The promise that a process is taken to have given before it started is to nobody in
        particular, and never over before its time."""
        promised = self._until_ms.get(region, {})
        left = [until_ms for leader, until_ms in promised.items() if leader not in following]
        return max([self.started_ms + kept_ms(PROMISE_MS), *left])

    def has_ended(self, region: int, now_ms: int, following: Collection[CopyName] = ()) -> bool:
        """Whether the time of `until_ms` has come."""
        return now_ms >= self.until_ms(region, following)

    def lets_grow(self, region: int, epoch: int, now_ms: int) -> bool:
        """Whether no promise keeps the leader of that epoch from adding a copy to its set. A region
        of epoch 1 has had no other leader to promise anything to."""
        return epoch == 1 or self.has_ended(region, now_ms)

    def prune(self, now_ms: int) -> None:
        """Forgets promises that have ended, which bounds memory by what was asked lately."""
        lasting = {
            region: {leader: until for leader, until in leaders.items() if until > now_ms}
            for region, leaders in self._until_ms.items()
        }
        self._until_ms = {region: leaders for region, leaders in lasting.items() if leaders}


@dataclass(slots=True)
class ReceivedPromises:
    """The promises that the leaders of one node have received, by region, epoch and copy.

    Invariant: none is used later than the time before it was asked for, plus its usable part."""

    _until_ms: dict[tuple[int, int], dict[CopyName, int]] = field(default_factory=dict)

    def received(
        self, region: int, epoch: int, copy: CopyName, asked_ms: int, promise_ms: int = PROMISE_MS
    ) -> None:
        """Takes the promise of a copy. *asked_ms*: the time before this request was sent. An answer
        that is late, or was overtaken, is worth what its own request is. *promise_ms*: its length,
        as the answer has it; of a longer one PROMISE_MS counts."""
        until_ms = asked_ms + usable_ms(min(promise_ms, PROMISE_MS))
        copies = self._until_ms.setdefault((region, epoch), {})
        copies[copy] = max(until_ms, copies.get(copy, until_ms))

    def deadline_ms(self, region: int, epoch: int, others: Collection[CopyName]) -> int | None:
        """The time at which the first promise of *others* ends, which are the copies that the
        leader requires but itself. None: one of them has never promised in this epoch."""
        assert others, "a leader that requires no other copy reads under its lease"
        copies = self._until_ms.get((region, epoch), {})
        if not copies.keys() >= set(others):
            return None
        return min(copies[copy] for copy in others)

    def are_valid(self, region: int, epoch: int, others: Collection[CopyName], now_ms: int) -> bool:
        """Whether a read may be answered now. At its deadline a promise has ended."""
        until_ms = self.deadline_ms(region, epoch, others)
        return until_ms is not None and now_ms < until_ms

    def keep(self, led: Collection[tuple[int, int]]) -> None:
        """Forgets the promises of all but *led*: regions that lead here, with their epochs."""
        for gone in self._until_ms.keys() - set(led):
            del self._until_ms[gone]


class AwakeTime:
    """A clock of the time during which this process ran, by which its leaders judge that a copy is
    silent. A process that stood still, or whose machine was suspended, has heard nobody meanwhile:
    it must not take its copies for dead when it goes on. Promises end while it stands still, so
    they do not use this clock."""

    def __init__(self, mono_ms: Callable[[], int]) -> None:
        self._mono_ms = mono_ms
        self._awake_ms = self._read_ms = mono_ms()

    def now_ms(self) -> int:
        now_ms = self._mono_ms()
        gap_ms, self._read_ms = now_ms - self._read_ms, now_ms
        self._awake_ms += gap_ms if gap_ms <= GAP_MS_MAX else STANDSTILL_MS
        return self._awake_ms


class NodePromises:
    """The promises of one process. A new process begins without any, as if it had given all."""

    def __init__(self, mono_ms: Callable[[], int]) -> None:
        self.given = GivenPromises(mono_ms())
        self.received = ReceivedPromises()
        self.awake = AwakeTime(mono_ms)
        """Read every ASK_MS, by the requests for promises."""
        self.openings = 0
        """Regions with copies that have become readable here: their promises are asked for at
        once."""

    def note_opening(self) -> None:
        self.openings += 1
