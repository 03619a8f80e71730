"""When a step is tried again: tenacity at the edge, every decision a pure function (STYLE 33).

Not done and perhaps done are both tried again, since a step is idempotent. Before the point of no
return a step has until the record's deadline, and a refusal ends it at once; after it, and in undo,
there is no giving up: the way is forward, with pauses that stay bounded.
"""

from typing import Any

from tenacity import AsyncRetrying, RetryCallState

from base.backoff import Backoff
from base.errors import MetaError, NotLeader, Unavailable, Unknown
from keys.committer import StaleRead
from keys.records import Phase, ProcedureRecord
from procedures.context import Live, Ports
from procedures.machine import Kind

STEP = Backoff(first_ms=100, max_ms=10_000)
STALE = Backoff(first_ms=1, max_ms=1_000)  # a lost race is run again almost at once


def must_finish(kind: Kind[Any], record: ProcedureRecord) -> bool:
    """Whether giving up is no option: undoing, or past the point of no return."""
    return record.phase is Phase.UNDO or kind.has_passed(record.trail)


def is_passing(error: BaseException) -> bool:
    """Whether the same step, run again, may well succeed."""
    return isinstance(error, Unavailable | Unknown | StaleRead)


def pause_ms(error: BaseException, attempt: int, noise: float) -> int:
    backoff = STALE if isinstance(error, StaleRead) else STEP
    return backoff.delay_ms(attempt, noise)


def deadline_of(kind: Kind[Any], record: ProcedureRecord) -> int | None:
    """Wall clock; None: the step may not be given up."""
    return None if must_finish(kind, record) else record.deadline_at_ms


def attempts(ports: Ports, live: Live, deadline_at_ms: int | None) -> AsyncRetrying:
    """Calls one step until it has moved. Raises the error for which it must be undone instead.

    Without a deadline it raises NotLeader alone, and what is no MetaError: our own mistake.
    """

    def again(call: RetryCallState) -> bool:
        error = _error(call)
        if not isinstance(error, MetaError) or isinstance(error, NotLeader):
            return False
        return deadline_at_ms is None or is_passing(error)

    def out_of_time(call: RetryCallState) -> bool:
        return deadline_at_ms is not None and ports.clock.wall_ms() >= deadline_at_ms

    def wait_s(call: RetryCallState) -> float:
        error = _error(call)
        assert error is not None
        return pause_ms(error, call.attempt_number, ports.rng.random()) / 1000

    async def sleep(seconds: float) -> None:
        await ports.clock.sleep_ms(round(seconds * 1000))

    def note(call: RetryCallState) -> None:
        error = _error(call)
        assert isinstance(error, MetaError)
        live.attempt = call.attempt_number + 1
        live.last_error, live.last_facts = error.code, error.facts

    return AsyncRetrying(
        retry=again, stop=out_of_time, wait=wait_s, sleep=sleep, before_sleep=note, reraise=True
    )


def _error(call: RetryCallState) -> BaseException | None:
    return call.outcome.exception() if call.outcome is not None else None
