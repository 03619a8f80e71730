"""What the manager knows of one procedure that is not over, and how people are shown it."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from keys.records import Phase
from procedures.holding import Blocked, Claim, claim_of
from procedures.machine import Kind
from procedures.runner import Driven


class State(StrEnum):
    """Of a procedure, for people. The first seven are under way; the rest are in API.md."""

    QUEUED = "queued"
    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    CANCELLING = "cancelling"
    ROLLING_BACK = "rolling_back"
    PARKED = "parked"


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
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def claim(self) -> Claim:
        return claim_of(self.held.procedure, self.held.record)

    @property
    def only_waits(self) -> bool:
        """Whether its step takes no place of the admission limit."""
        return self.kind is not None and self.kind.steps[self.held.record.step].waits

    @property
    def cancelable(self) -> bool:
        record = self.held.record
        return (
            self.kind is not None
            and record.phase is Phase.FORWARD
            and not self.kind.has_passed(record.trail)
        )

    @property
    def state(self) -> State:
        record = self.held.record
        if self.parked is not None:
            return State.PARKED
        if record.phase is Phase.UNDO:
            return State.CANCELLING if record.cancel else State.ROLLING_BACK
        if self.task is None:
            return State.WAITING if self.blocked else State.QUEUED
        return State.RETRYING if self.live.last_error else State.RUNNING
