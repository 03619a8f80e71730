"""Controls as they are carried out: each by its own fenced write, answered when it is stored.

One task owns a procedure. Whoever steers one ends that task first, and owns the procedure until
the write is settled; a commit of the step that was on its way stands, and is judged anew. A
throttle is no move, so it leaves the step alone.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

from base.errors import Unavailable, Unknown
from keys.committer import StaleRead
from keys.poison import PoisonKey
from keys.records import Controlled, ProcedureHistory, ProcedureRecord
from keys.txn import Txn, snapshot
from procedures import journal
from procedures.context import Ports
from procedures.control import Control, State, is_fulfilled, refused, require_allowed
from procedures.entry import Entry
from procedures.runner import Moved, Runner


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody asks of a procedure."""

    control: Control
    by: str
    reason: str | None = None
    percent: int = 0
    """Of a throttle: the share of time to rest."""
    rows_per_s: int | None = None
    """Of a throttle: the rate of a reorg; None: it finds its own."""

    def mark(self, at_ms: int) -> Controlled:
        return Controlled(action=self.control.value, by=self.by, at_ms=at_ms, reason=self.reason)


class Steered(Protocol):
    """The manager, as far as a control needs it."""

    @property
    def runner(self) -> Runner: ...

    def entry(self, procedure: str) -> Entry | None: ...

    async def find(self, procedure: str) -> Entry | ProcedureHistory: ...

    async def changed(self, *, deadline_ms: int) -> None: ...

    async def stop(self, entry: Entry) -> None:
        """Ends the task that owns it, so that its caller owns it."""
        ...

    async def read_again(self, entry: Entry) -> None:
        """After a commit that moved it beside us."""
        ...

    def take_over(self, entry: Entry, after: Moved) -> None:
        """What is stored of it now."""
        ...

    def release(self, entry: Entry) -> None:
        """It may be run again."""
        ...


LOOK_MS = 1_000  # at a procedure that somebody else is steering at this moment


@dataclass(frozen=True, slots=True)
class Steering:
    house: Steered

    async def apply(self, procedure: str, command: Command) -> Entry | ProcedureHistory:
        """Raises NotFound, or Conflict as `require_allowed`. Again: the same answer."""
        while True:
            entry = await self.judge(procedure, command.control)
            if is_fulfilled(entry.facts, command.control):
                return entry
            if await self._apply(entry, command):
                return await self.house.find(procedure)

    async def judge(self, procedure: str, control: Control) -> Entry:
        """The procedure as it stands: it is allowed there, or fulfilled. Raises as `apply`."""
        while True:
            entry = self.house.entry(procedure)
            if entry is None:
                found = await self.house.find(procedure)
                assert isinstance(found, ProcedureHistory)
                raise refused(procedure, control, found.outcome)
            if entry.controlled:
                await self.house.changed(deadline_ms=LOOK_MS)
                continue
            if not is_fulfilled(entry.facts, control):
                require_allowed(entry.facts, control, procedure)
            return entry

    async def _apply(self, entry: Entry, command: Command) -> bool:
        """False: it moved meanwhile, so that the command must be judged again."""
        entry.controlled = True
        try:
            if command.control in (Control.CANCEL, Control.PAUSE):
                before = entry.facts
                await self.house.stop(entry)
                if entry.over.is_set() or entry.held.record.poisoned:
                    return False
                still = entry.facts.has_passed == before.has_passed
                if not still or entry.facts.is_undoing != before.is_undoing:
                    return False
            await self._carry_out(entry, command)
        except StaleRead:
            await self.house.read_again(entry)
            return False
        finally:
            entry.controlled = False
            if not entry.over.is_set():
                self.house.release(entry)
        return True

    async def expire(self, entry: Entry) -> None:
        """Its deadline came while it waited, for its locks or a place. If the store is silent, the
        caller asks again."""
        entry.controlled = True
        try:
            await self._turn_back(entry)
        except (Unavailable, Unknown):
            return
        finally:
            entry.controlled = False
            if not entry.over.is_set():
                self.house.release(entry)

    async def _turn_back(self, entry: Entry) -> None:
        waits = [blocked.by for blocked in entry.blocked] or "a place among those that run"
        error = Unavailable("deadline-exceeded", waiting_for=waits)
        runner = self.house.runner
        back = runner.abandon if entry.never_began else runner.turn_back
        try:
            after: Moved = await back(entry.held, error)
        except StaleRead:
            await self.house.read_again(entry)
        else:
            self.house.take_over(entry, after)

    async def _carry_out(self, entry: Entry, command: Command) -> None:
        if moves_its_record(entry, command):
            self.house.take_over(entry, await store(self.house.runner, entry, command))
        entry.parked = None
        entry.live.woken.set()


def moves_its_record(entry: Entry, command: Command) -> bool:
    """A retry only wakes what rests, unless its undo was given up."""
    return command.control is not Control.RETRY or entry.state is State.POISONED


async def store(runner: Runner, entry: Entry, command: Command) -> Moved:
    """The write of a control; in a dry run *runner* is one over a draft."""
    held = entry.held
    mark = command.mark(runner.ports.clock.wall_ms())
    record = held.record
    match command.control:
        case Control.CANCEL if entry.never_began:
            return await runner.abandon(held, mark)
        case Control.CANCEL:
            return await runner.turn_back(held, mark)
        case Control.PAUSE:
            return await runner.store(held, partial(journal.pause, record, mark))
        case Control.RESUME:
            return await runner.store(held, partial(journal.resume, record, mark))
        case Control.THROTTLE:
            slowed = journal.throttle(record, mark, command.percent, command.rows_per_s)
            return await runner.store(held, lambda _: slowed)
        case Control.RETRY:
            effect = await _without_poison(runner.ports, record)
            return await runner.store(held, partial(journal.undo_again, record, mark), effect)
        case Control.CLEAR:
            effect = await _without_poison(runner.ports, record)
            return await runner.end(held, partial(journal.cleared, record, mark), effect)


async def _without_poison(ports: Ports, record: ProcedureRecord) -> Txn:
    key = PoisonKey.of(record.resource)
    return Txn.on(await snapshot(ports.kv, key, deadline_ms=ports.deadline_ms)).delete(key)


def has_expired(entry: Entry, now_ms: int) -> bool:
    """Whether it has waited for its locks or its place until its deadline."""
    record, facts = entry.held.record, entry.facts
    waits = facts.state in (State.QUEUED, State.WAITING)
    return waits and not facts.has_passed and record.deadline_at_ms <= now_ms
