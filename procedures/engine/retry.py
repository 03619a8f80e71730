"""Decisions on retries of a step: when it is tried again and when it is given up. Pure (S33).

Not done and perhaps done are both tried again, since a step is idempotent. Before the point of no
return a step has until the record's deadline, and a refusal ends it at once. After it there is no
giving up: the way is forward, with pauses that stay bounded. An undo is tried again whatever it
failed with, until it has been tried for UNDO_MS; then it leaves a poison. A job that has ended with
an error, or a region that refuses an order, may do so by chance once, yet not again and again: then
it is as a refusal of the step.
"""

from dataclasses import dataclass
from typing import Any

from keys.commit.committer import StaleRead
from keys.model.records import ProcedurePhase, ProcedureRecord
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import MetaError, Unavailable, Unknown
from procedures.machine import Kind

STEP = Backoff(first_ms=100, max_ms=10_000)
UNDO_MS = 600_000  # an undo that has failed for so long is given up: its resource is poisoned
DEFINITE = frozenset({"job-failed", "order-refused"})
DEFINITE_MAX = 16  # attempts that end so: some two minutes, in which a node may be started anew
STALE = Backoff(first_ms=1, max_ms=1_000)  # a lost race is run again almost at once


def is_bound_to_finish(kind: Kind[Any], record: ProcedureRecord) -> bool:
    """Whether giving up is no option: undoing, or past the point of no return."""
    return record.phase is ProcedurePhase.UNDO or kind.has_passed(record.trail)


def is_passing(error: BaseException) -> bool:
    """Whether the same step, run again, may well succeed."""
    return isinstance(error, Unavailable | Unknown | StaleRead)


def is_definite(error: BaseException) -> bool:
    """Whether somebody was reached, and could not do it; nobody was merely away."""
    return isinstance(error, MetaError) and error.code in DEFINITE


def pause_ms(error: BaseException, attempt: int, noise: float) -> int:
    backoff = STALE if isinstance(error, StaleRead) else STEP
    return backoff.delay_ms(attempt, noise)


def deadline_of(kind: Kind[Any], record: ProcedureRecord) -> int | None:
    """Returns the deadline of the step by the clock of `Gate.worked_ms`; None: it has none. An
    undo has a budget instead (`Tries`)."""
    return None if is_bound_to_finish(kind, record) else record.due_ms


@dataclass(slots=True)
class Tries:
    """The attempts of one step by one leader."""

    attempt: int = 1
    definite: int = 0
    """Attempts that failed with a definite error."""
    spent_ms: int = 0
    """Time spent in attempts and the pauses between them, in ms. Time while all procedures are
    paused, or while no server leads, is not counted."""

    def left_ms(self, kind: Kind[Any], record: ProcedureRecord, now_ms: int) -> int | None:
        """The time limit of the next attempt in milliseconds, at *now_ms* by `Gate.worked_ms`.
        None: the attempt may take as long as it takes."""
        if record.phase is ProcedurePhase.UNDO:
            return max(0, UNDO_MS - self.spent_ms)
        until_ms = deadline_of(kind, record)
        return None if until_ms is None else max(0, until_ms - now_ms)

    def are_over(
        self, kind: Kind[Any], record: ProcedureRecord, error: MetaError, now_ms: int
    ) -> bool:
        """Whether *error*, of the last attempt, is the one for which the step is given up."""
        if record.phase is ProcedurePhase.FORWARD:
            if kind.has_passed(record.trail):
                return False
            if not is_passing(error) or self.definite >= DEFINITE_MAX:
                return True
        return self.left_ms(kind, record, now_ms) == 0


def rest_ms(kind: Kind[Any], record: ProcedureRecord) -> int:
    """The rest of a throttled step before it runs again, in milliseconds from the end of its last
    run; 0: the step does not rest."""
    percent = record.throttle_percent
    if not percent or record.phase is ProcedurePhase.UNDO or not kind.steps[record.step].paced:
        return 0
    runs = [beat for beat in record.timeline if beat.step == record.step]
    return runs[-1].ms * percent // (100 - percent) if runs else 0


def rested_ms(record: ProcedureRecord, now_ms: int) -> int:
    """The part of this rest, in milliseconds, that is over when a leader takes up the step. Another
    leader's clock may have given the end of the last run, so the result is never less than 0."""
    runs = [beat for beat in record.timeline if beat.step == record.step]
    return max(0, now_ms - runs[-1].at_ms) if runs else 0
