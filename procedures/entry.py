"""What the manager knows of one procedure that is not over, and how people are shown it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from keys.records import Phase
from procedures.control import Facts, State
from procedures.holding import Blocked, Claim, claim_of
from procedures.machine import Kind, Lane
from procedures.runner import Driven


@dataclass(slots=True)
class Entry(Driven):
    """One procedure that is not over. Owned by the manager's tasks; never shared across terms."""

    kind: Kind[Any] | None = None
    """None: this server does not know the kind, or not this format: it is parked."""
    task: "asyncio.Task[None] | None" = None
    blocked: tuple[Blocked, ...] = ()
    parked: str | None = None
    """Why nobody runs it."""
    controlled: bool = False
    """A control write is on its way: nobody starts a task."""
    began_ms: int | None = None
    """Wall clock, when this leader first started it."""
    stalled: bool = False
    """It runs, yet nothing has moved for as long as the limits say."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def claim(self) -> Claim:
        return claim_of(self.held.procedure, self.held.record)

    @property
    def is_ddl(self) -> bool:
        """Whether it counts for the bound of the queue."""
        return self.kind is None or self.kind.lane is Lane.DDL

    @property
    def is_run(self) -> bool:
        """Whether a task drives it."""
        return self.task is not None

    @property
    def only_waits(self) -> bool:
        """Whether its step takes no place of the admission limit."""
        return self.kind is not None and self.kind.steps[self.held.record.step].waits

    @property
    def never_began(self) -> bool:
        """Surely no step of it has ever run: neither here nor, before, at another leader."""
        record = self.held.record
        return self.began_ms is None and not record.resumed and not record.timeline

    @property
    def is_at_rest(self) -> bool:
        """Nobody may run it, whatever it holds."""
        record = self.held.record
        stopped = record.paused_at_ms is not None or record.poisoned
        return stopped or self.controlled or self.parked is not None or self.kind is None

    @property
    def has_passed(self) -> bool:
        return self.kind is not None and self.kind.has_passed(self.held.record.trail)

    @property
    def facts(self) -> Facts:
        """What decides which controls are allowed."""
        return Facts(
            state=self.state,
            has_passed=self.has_passed,
            is_undoing=self.held.record.phase is Phase.UNDO,
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
        if record.phase is Phase.UNDO:
            return State.CANCELLING if record.cancel else State.ROLLING_BACK
        if not self.is_run:
            return State.WAITING if self.blocked else State.QUEUED
        return State.RETRYING if self.live.last_error else State.RUNNING

    def last_moved_ms(self) -> int:
        """When it last finished a step, made progress, or was taken up by this leader."""
        record = self.held.record
        beat_ms = record.timeline[-1].at_ms if record.timeline else record.submitted_at_ms
        return max(beat_ms, self.live.moved_at_ms, self.began_ms or 0)
