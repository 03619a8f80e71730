"""The controls that people may apply to a procedure in each of its states, as a table.

Pure. The page docs/procedures/controls.md and the test of every cell are made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from keys.model.records import Controlled, ProcedureOutcome
from metasrv_base.errors import Conflict


class State(StrEnum):
    """The state of an active procedure, for people."""

    QUEUED = "queued"
    WAITING = "waiting"
    RUNNING = "running"
    RETRYING = "retrying"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    ROLLING_BACK = "rolling_back"
    POISONED = "poisoned"
    PARKED = "parked"


class Control(StrEnum):
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    THROTTLE = "throttle"
    CLEAR = "clear"
    """Clears the poison that a procedure left: its undo has been finished by hand."""


@dataclass(frozen=True, slots=True)
class Command:
    """A control that somebody requests of a procedure."""

    control: Control
    by: str
    reason: str | None = None
    percent: int = 0
    """The share of time to rest, in percent; only for a throttle."""
    rows_per_s: int | None = None
    """The rate of a reorg, in rows per second; only for a throttle. If None, the reorg finds its
    own rate."""

    def mark(self, at_ms: int) -> Controlled:
        return Controlled(action=self.control.value, by=self.by, at_ms=at_ms, reason=self.reason)


Next = State | ProcedureOutcome
Row = Mapping[Control, tuple[Next, ...]]

_WAITS: Row = {
    Control.CANCEL: (ProcedureOutcome.CANCELLED, State.CANCELLING),
    Control.PAUSE: (State.PAUSED,),
}

LEADS: Mapping[State, Row] = {
    State.QUEUED: {**_WAITS, Control.THROTTLE: (State.QUEUED,)},
    State.WAITING: {**_WAITS, Control.THROTTLE: (State.WAITING,)},
    State.RUNNING: {
        Control.CANCEL: (State.CANCELLING,),
        Control.PAUSE: (State.PAUSED,),
        Control.THROTTLE: (State.RUNNING,),
    },
    State.RETRYING: {
        Control.CANCEL: (State.CANCELLING,),
        Control.PAUSE: (State.PAUSED,),
        Control.RETRY: (State.RETRYING,),
        Control.THROTTLE: (State.RETRYING,),
    },
    State.PAUSED: {
        Control.CANCEL: (ProcedureOutcome.CANCELLED, State.CANCELLING),
        Control.RESUME: (State.RUNNING, State.QUEUED, State.WAITING),
        Control.THROTTLE: (State.PAUSED,),
    },
    State.CANCELLING: {Control.RETRY: (State.CANCELLING,)},
    State.ROLLING_BACK: {Control.RETRY: (State.ROLLING_BACK,)},
    State.POISONED: {
        Control.RETRY: (State.CANCELLING, State.ROLLING_BACK),
        Control.CLEAR: (ProcedureOutcome.CANCELLED, ProcedureOutcome.ROLLED_BACK),
    },
    State.PARKED: {
        Control.CANCEL: (State.CANCELLING,),
        Control.RETRY: (State.RUNNING, State.QUEUED, State.CANCELLING, State.ROLLING_BACK),
    },
}
"""State -> control -> the states it may be in when the control is answered: the first in most
cases. What is not here is refused with 409."""

FULFILLED: Mapping[State, frozenset[Control]] = {
    State.QUEUED: frozenset({Control.RESUME}),
    State.WAITING: frozenset({Control.RESUME}),
    State.RUNNING: frozenset({Control.RESUME}),
    State.RETRYING: frozenset({Control.RESUME}),
    State.PAUSED: frozenset({Control.PAUSE}),
    State.CANCELLING: frozenset({Control.CANCEL}),
}
"""State -> controls that change nothing there, because what they ask for is so already: sent again
because an answer was lost, they are answered the same."""


@dataclass(frozen=True, slots=True)
class ControlInput:
    """The facts, beside the control, that decide whether it is allowed."""

    state: State
    has_passed: bool
    """The point of no return."""
    is_undoing: bool
    is_known: bool
    """This server has its kind, in its format."""
    is_paced: bool
    """Whether its kind has steps that a throttle slows down."""


def is_fulfilled(facts: ControlInput, control: Control) -> bool:
    return control in FULFILLED.get(facts.state, ())


def allowed(facts: ControlInput) -> tuple[Control, ...]:
    """Controls that change something now."""
    return tuple(control for control in Control if _refusal(facts, control) is None)


def require_allowed(facts: ControlInput, control: Control, procedure: str) -> None:
    """Raises Conflict: "past-point-of-no-return", or "action-not-allowed" with what is."""
    code = _refusal(facts, control)
    if code is not None:
        raise refused(procedure, control, facts.state, allowed(facts), code)


def refused(
    procedure: str,
    control: Control,
    state: Next,
    instead: tuple[Control, ...] = (),
    code: str = "action-not-allowed",
) -> Conflict:
    return Conflict(
        code,
        procedure_id=procedure,
        action=control.value,
        state=f"it is {state.value}",
        allowed_actions=tuple(action.value for action in instead),
    )


def _refusal(facts: ControlInput, control: Control) -> str | None:
    """The problem code; None: it is allowed."""
    if not facts.is_known or control not in LEADS[facts.state]:
        return "action-not-allowed"
    if control is Control.CANCEL and facts.is_undoing:
        return "action-not-allowed"
    if control is Control.CANCEL and facts.has_passed:
        return "past-point-of-no-return"
    if control is Control.THROTTLE and not facts.is_paced:
        return "action-not-allowed"
    return None
