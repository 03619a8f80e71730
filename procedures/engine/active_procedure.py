"""The manager's state of one active procedure, and the form in which it is shown to people."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from keys.model.records import ProcedureHistory, ProcedurePhase
from metasrv_base.errors import MetaError, Unavailable
from procedures.context import Live
from procedures.engine.control import Command, ControlInput, State, refused
from procedures.engine.runner import StoredRecord
from procedures.locking.holding import Blocked, LockClaim, claim_of
from procedures.machine import AdmissionLane, Kind

LETTERS_MAX = 16  # in one mailbox; one more is refused, and was not done


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """A control on its way to the owner of a procedure."""

    command: Command | None
    """The command that waited; None if its time in the queue is over."""
    answer: "asyncio.Future[ActiveProcedure | ProcedureHistory]"

    def tell(self, entry: "ActiveProcedure | ProcedureHistory") -> None:
        if not self.answer.done():
            self.answer.set_result(entry)

    def fail(self, error: MetaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    def hear_of_end(self, procedure: str, history: ProcedureHistory) -> None:
        """Answers a letter that came after the end of the procedure."""
        if self.command is None:
            self.tell(history)
        else:
            self.fail(refused(procedure, self.command.control, history.outcome))


@dataclass(slots=True)
class ActiveProcedure:
    """An active procedure. Owned by the manager's tasks; never shared across terms."""

    held: StoredRecord
    live: Live = field(default_factory=Live)
    kind: Kind[Any] | None = None
    """The kind; None if this server does not know the kind, or not this format: the procedure is
    parked."""
    task: "asyncio.Task[None] | None" = None
    """The one that owns it: it alone moves the record. None: it rests, and nothing is asked."""
    bell: asyncio.Event | None = None
    """The bell of its owner, set when something has happened that the owner may wait for; None if
    there is no owner."""
    letters: list[Letter] = field(default_factory=list)
    """Requests to the procedure that are not taken yet. Its owner takes them one by one."""
    drives: bool = False
    """Whether it was admitted: its owner runs its steps."""
    rests: bool = False
    """Whether it is admitted but has given its place back between two attempts."""
    wants_place: bool = False
    """Whether its rest is over and it waits for a place again."""
    waits: bool = False
    """Whether it lacks some of its locks."""
    blockers: Callable[[], tuple[Blocked, ...]] = tuple
    """Returns the claims that it waits for; computed on demand."""
    parked: str | None = None
    """Reason for which it is parked; None: it is not."""
    began_ms: int | None = None
    """Wall clock, when this leader first started it."""
    stalled: bool = False
    """Whether it runs without progress for longer than the limit."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, command: Command | None) -> Letter:
        """Into its mailbox. Raises Unavailable: too many wait there."""
        if len(self.letters) >= LETTERS_MAX:
            raise Unavailable(what="procedure", reason="too many controls of it wait")
        letter = Letter(command, asyncio.get_running_loop().create_future())
        self.letters.append(letter)
        return letter

    @property
    def claim(self) -> LockClaim:
        return claim_of(self.held.procedure, self.held.record)

    @property
    def is_ddl(self) -> bool:
        """Whether it counts for the bound of the queue."""
        return self.kind is None or self.kind.lane is AdmissionLane.DDL

    @property
    def blocked(self) -> tuple[Blocked, ...]:
        """The first of the claims that it waits for."""
        return self.blockers()

    @property
    def is_run(self) -> bool:
        """Whether its steps are run."""
        return self.drives

    @property
    def only_waits(self) -> bool:
        """Whether its step takes no place of the admission limit."""
        return self.rests or self.takes_none

    @property
    def takes_none(self) -> bool:
        return self.kind is not None and self.kind.steps[self.held.record.step].waits

    @property
    def never_began(self) -> bool:
        """Surely no step of it has ever run: neither here nor, before, at another leader."""
        record = self.held.record
        return self.began_ms is None and not record.resumed and not record.timeline

    @property
    def is_at_rest(self) -> bool:
        """Whether no step of it may run, whatever locks it holds."""
        record = self.held.record
        stopped = record.paused_at_ms is not None or record.poisoned
        return stopped or self.parked is not None or self.kind is None

    @property
    def has_passed(self) -> bool:
        return self.kind is not None and self.kind.has_passed(self.held.record.trail)

    @property
    def facts(self) -> ControlInput:
        """The inputs that decide which controls are allowed."""
        return ControlInput(
            state=self.state,
            has_passed=self.has_passed,
            is_undoing=self.held.record.phase is ProcedurePhase.UNDO,
            is_known=self.kind is not None,
            is_paced=self.kind is not None and self.kind.is_paced,
        )

    @property
    def state(self) -> State:
        record = self.held.record
        if self.parked is not None:
            return State.PARKED
        if record.poisoned:
            return State.POISONED
        if record.paused_at_ms is not None:
            return State.PAUSED
        if record.phase is ProcedurePhase.UNDO:
            return State.CANCELLING if record.cancel else State.ROLLING_BACK
        if not self.is_run:
            return State.WAITING if self.waits else State.QUEUED
        return State.RETRYING if self.live.last_error else State.RUNNING

    def last_moved_ms(self) -> int:
        """Time at which it last finished a step, made progress, or was resumed by this leader."""
        record = self.held.record
        beat_ms = record.timeline[-1].at_ms if record.timeline else record.submitted_at_ms
        return max(beat_ms, self.live.moved_at_ms, self.began_ms or 0)
