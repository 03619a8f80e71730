"""Who is here, who holds which lock, and who waits for what: the leader's memory, without I/O."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from keys.records import Lock
from procedures.admission import Candidate, Limits, WaitingRoom
from procedures.entry import Entry
from procedures.holding import LockTable
from procedures.machine import Lane


@dataclass(slots=True)
class Floor:
    """Every procedure of one term that is not over. A change looks only at those it concerns."""

    entries: dict[str, Entry] = field(default_factory=dict)
    running: dict[str, Entry] = field(default_factory=dict)
    locks: LockTable = field(default_factory=LockTable)
    arriving: dict[str, tuple[Lock, ...]] = field(default_factory=dict)
    """Submissions on their way to the store; they count for the queue."""
    _held_back: Counter[str] = field(default_factory=Counter)
    """Not started now: somebody that goes before them is on its way to the store."""
    _room: WaitingRoom = field(default_factory=WaitingRoom)
    _queued: int = 0
    """DDL procedures that are not over."""

    def is_full(self, limits: Limits) -> bool:
        return len(self.arriving) + self._queued >= limits.queue_max

    def free_places(self, lane: Lane, limits: Limits) -> int:
        """None of them: who comes now stands behind all that wait for one."""
        running = (_candidate(entry) for entry in self.running.values())
        taken = sum(one.lane is lane and not one.only_waits for one in running)
        return max(0, limits.running_max[lane] - taken)

    # Coming and going --------------------------------------------------------------------------

    def announce(self, procedure: str, locks: tuple[Lock, ...]) -> frozenset[str]:
        """It is on its way to the store, before those that are returned; until it has `arrived`
        none of them is started."""
        overtakes = self.locks.overtaken_by(locks, self.arriving)
        self.arriving[procedure] = locks
        self._held_back.update(overtakes)
        return overtakes

    def arrived(self, procedure: str, overtakes: frozenset[str]) -> None:
        """It is here, or will not come."""
        self.arriving.pop(procedure, None)
        self._held_back -= Counter(overtakes)
        for overtaken in overtakes & self.entries.keys():
            self.offer(self.entries[overtaken])

    def take_in(self, entry: Entry) -> None:
        self.entries[entry.held.procedure] = entry
        self._queued += entry.is_ddl
        self._see(self.locks.add(entry.claim))

    def forget(self, entry: Entry) -> None:
        procedure = entry.held.procedure
        changed = self.locks.remove(procedure)
        del self.entries[procedure]
        self._queued -= entry.is_ddl
        self._see(changed)

    def claim_again(self, entry: Entry) -> None:
        """Its record says another claim than before."""
        procedure = entry.held.procedure
        if self.locks.claims[procedure] != entry.claim:
            self._see((self.locks.remove(procedure) - {procedure}) | self.locks.add(entry.claim))

    def _see(self, changed: Iterable[str]) -> None:
        """Whose reasons to wait are others now."""
        for procedure in changed:
            entry = self.entries[procedure]
            entry.blocked = self.locks.blocked(procedure)
            self.offer(entry)

    # Starting ----------------------------------------------------------------------------------

    def offer(self, entry: Entry) -> None:
        """To the waiting room, if it only lacks a place."""
        if self._may_start(entry.held.procedure):
            self._room.enter(_candidate(entry))

    def admit(self, limits: Limits) -> tuple[Entry, ...]:
        """Who starts now."""
        if self._room.is_empty:
            return ()
        running = [_candidate(entry) for entry in self.running.values()]
        started = self._room.admit(running, limits, self._may_start)
        return tuple(self.entries[procedure] for procedure in started)

    def rest(self, entry: Entry) -> None:
        """Nobody runs it any more."""
        entry.task = None
        self.running.pop(entry.held.procedure, None)

    def _may_start(self, procedure: str) -> bool:
        entry = self.entries.get(procedure)
        return (
            entry is not None
            and entry.task is None
            and not entry.blocked
            and not entry.is_at_rest
            and procedure not in self._held_back
        )


def _candidate(entry: Entry) -> Candidate:
    assert entry.kind is not None
    submission = entry.held.record.submission
    return Candidate(entry.held.procedure, submission, entry.kind.lane, entry.only_waits)
