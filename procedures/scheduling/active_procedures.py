"""The active procedures, their locks and their waits: the leader's memory, without I/O."""

import asyncio
import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from keys.model.records import Lock
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.steering import has_expired
from procedures.locking.holding import LockTable
from procedures.locking.locks import is_schema_side
from procedures.machine import AdmissionLane
from procedures.scheduling.admission import Limits, WaitingProcedure, WaitingRoom
from procedures.scheduling.tenant_limits import TenantReservations

LOOKS_AT_ONCE = 256  # claims looked at between two yields of the event loop


@dataclass(slots=True)
class ActiveProcedures:
    """Every procedure of one term that is not over. A change looks only at those it concerns."""

    entries: dict[str, ActiveProcedure] = field(default_factory=dict)
    """Procedures in order of submission."""
    running: dict[str, ActiveProcedure] = field(default_factory=dict)
    locks: LockTable = field(default_factory=LockTable)
    tenants: TenantReservations = field(default_factory=TenantReservations)
    arriving: dict[str, tuple[Lock, ...]] = field(default_factory=dict)
    """Submissions on their way to the store; they count for the queue."""
    _schema_changes: dict[str, tuple[Lock, ...]] = field(default_factory=dict)
    """Submissions with locks of the schema side, which others may precede. Failovers of nodes come
    by the thousand, and are none of these."""
    _keys: dict[str, tuple[str, asyncio.Event]] = field(default_factory=dict)
    """Procedure on its way to the store -> its idempotency key, if it has one, and whether it has
    arrived."""
    announced: int = 0
    """The number of all submissions announced since the term began."""
    _held_back: Counter[str] = field(default_factory=Counter)
    """Procedures that may not start now, since one that precedes them is on its way to the
    store."""
    _room: WaitingRoom = field(default_factory=WaitingRoom)
    _queued: int = 0
    """DDL procedures that are not over."""
    _newest: int = 0
    """The highest submission number that was taken in."""
    _deadlines: list[tuple[int, str]] = field(default_factory=list)
    """A heap: by when who waits must have begun. It may since have begun, moved, or ended."""

    def is_full(self, limits: Limits) -> bool:
        return len(self.arriving) + self._queued >= limits.queue_max

    def free_places(self, lane: AdmissionLane, limits: Limits) -> int:
        """None of them: who comes now stands behind all that wait for one."""
        running = (_running(entry) for entry in self.running.values())
        running_count = sum(waiting.lane is lane and not waiting.only_waits for waiting in running)
        return max(0, limits.running_max[lane] - running_count)

    # Coming and going --------------------------------------------------------------------------

    def twin(self, key: str | None) -> asyncio.Event | None:
        """Returns the event that is set when the submission with that idempotency key has
        `arrived`; None: no such one is on its way to the store."""
        events = (event for other, event in self._keys.values() if other == key)
        return next(events, None)

    def announce(
        self, procedure: str, locks: tuple[Lock, ...], key: str | None = None
    ) -> frozenset[str]:
        """Notes a procedure that is about to be stored. Returns those that it precedes; none of
        them starts until it has `arrived`."""
        self.announced += 1
        if key is not None:
            self._keys[procedure] = (key, asyncio.Event())
        overtakes = self.locks.overtaken_by(locks, self._schema_changes)
        self.arriving[procedure] = locks
        if any(is_schema_side(lock.key) for lock in locks):
            self._schema_changes[procedure] = locks
        self._held_back.update(overtakes)
        return overtakes

    def arrived(self, procedure: str, overtakes: frozenset[str]) -> None:
        """Notes that an announced procedure is stored, or will not be."""
        self.arriving.pop(procedure, None)
        self._schema_changes.pop(procedure, None)
        if procedure in self._keys:
            _, event = self._keys.pop(procedure)
            event.set()
        if procedure not in self.entries:
            self.tenants.release(procedure)
        self._held_back -= Counter(overtakes)
        for overtaken in overtakes & self.entries.keys():
            self.offer(self.entries[overtaken])

    def take_in(self, entry: ActiveProcedure) -> None:
        procedure, submission = entry.held.procedure, entry.held.record.submission
        self.entries[procedure] = entry
        if submission < self._newest:  # it turned up late
            by_age = sorted(self.entries.items(), key=lambda pair: pair[1].held.record.submission)
            self.entries = dict(by_age)
        self._newest = max(submission, self._newest)
        self._queued += entry.is_ddl
        entry.blockers = partial(self.locks.blocked, procedure)
        self.tenants.take_in(procedure, entry.held.record, entry.kind)
        self.expect(entry)
        self._see(self.locks.add(entry.claim))

    def forget(self, entry: ActiveProcedure) -> None:
        """Removes a procedure and its locks. `look_again` finds those that waited for it."""
        procedure = entry.held.procedure
        self.locks.remove(procedure)
        self.tenants.release(procedure)
        del self.entries[procedure]
        entry.blockers = tuple  # who looks at it still waits for nobody
        self._queued -= entry.is_ddl

    def claim_again(self, entry: ActiveProcedure) -> None:
        """Replaces its claim by the one that its record has now, and what it has reserved."""
        self.tenants.take_again(entry.held.procedure, entry.held.record, entry.kind)
        self._see(self.locks.replace(entry.claim))

    def look_again(self) -> bool:
        """Evaluates some of the claims whose locks may have become free. Returns whether more
        are left."""
        if self.locks.is_due:
            self._see(self.locks.look_again(LOOKS_AT_ONCE))
        return self.locks.is_due

    def _see(self, changed: Iterable[str]) -> None:
        """Updates and offers the procedures that hold all their locks now, or no longer do."""
        entries = [self.entries[procedure] for procedure in changed]
        for entry in sorted(entries, key=lambda entry: entry.held.record.submission):
            entry.waits = not self.locks.holds(entry.held.procedure)
            self.offer(entry)

    # Starting ----------------------------------------------------------------------------------

    def offer(self, entry: ActiveProcedure) -> None:
        """Puts *entry* into the waiting room if it lacks only a place."""
        if self._may_start(entry.held.procedure):
            self._room.enter(_candidate(entry))

    def admit(self, limits: Limits) -> tuple[ActiveProcedure, ...]:
        """Returns the procedures that start now."""
        if self._room.is_empty:
            return ()
        running = [_running(entry) for entry in self.running.values()]
        started = self._room.admit(running, limits, self._may_start)
        return tuple(self.entries[procedure] for procedure in started)

    def start(self, entry: ActiveProcedure) -> None:
        """Marks *entry* as admitted and running."""
        entry.drives, entry.rests, entry.wants_place = True, False, False
        self.running[entry.held.procedure] = entry

    def rest(self, entry: ActiveProcedure) -> None:
        """Marks *entry* as not running."""
        entry.drives, entry.rests, entry.wants_place = False, False, False
        entry.task = entry.bell = None
        self.running.pop(entry.held.procedure, None)

    def _may_start(self, procedure: str) -> bool:
        entry = self.entries.get(procedure)
        if entry is None or entry.is_at_rest or procedure in self._held_back:
            return False
        return entry.wants_place if entry.drives else entry.task is None and not entry.waits

    # Waiting -----------------------------------------------------------------------------------

    def expect(self, entry: ActiveProcedure) -> None:
        """Registers the deadline by which *entry* must have begun."""
        heapq.heappush(self._deadlines, (entry.held.record.due_ms, entry.held.procedure))

    def expired(self, now_ms: int) -> list[ActiveProcedure]:
        """Returns waiting procedures whose deadline has passed at *now_ms*, by `Gate.worked_ms`.
        Each is returned once, unless it is `expect`ed again."""
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            _, procedure = heapq.heappop(self._deadlines)
            entry = self.entries.get(procedure)
            if entry is not None and has_expired(entry, now_ms):
                expired.append(entry)
        return expired


def _candidate(entry: ActiveProcedure) -> WaitingProcedure:
    """Returns the form in which it enters the waiting room: after a rest it takes a place again."""
    return _as_one(entry, entry.takes_none if entry.wants_place else entry.only_waits)


def _running(entry: ActiveProcedure) -> WaitingProcedure:
    """Returns the form in which it counts as running: while it rests it takes no place."""
    return _as_one(entry, entry.only_waits)


def _as_one(entry: ActiveProcedure, only_waits: bool) -> WaitingProcedure:
    assert entry.kind is not None
    submission = entry.held.record.submission
    return WaitingProcedure(entry.held.procedure, submission, entry.kind.lane, only_waits)
