"""When a step is tried again: tenacity at the edge, every decision a pure function (STYLE 33).

Not done and perhaps done are both tried again, since a step is idempotent. Before the point of no
return a step has until the record's deadline, and a refusal ends it at once. After it there is no
giving up: the way is forward, with pauses that stay bounded. An undo is tried again whatever it
failed with, until its own deadline; then it leaves a poison. A job that has ended with an error, or
a region that refuses an order, may do so by chance once, yet not again and again: then it is as a
refusal of the step.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState

from base.backoff import Backoff
from base.clock import Clock
from base.errors import MetaError, NotLeader, Unavailable, Unknown
from keys.committer import StaleRead
from keys.records import Phase, ProcedureRecord
from procedures.context import Live, Ports
from procedures.machine import Kind

STEP = Backoff(first_ms=100, max_ms=10_000)
UNDO_MS = 600_000  # an undo that still fails after this long is given up: its resource is poisoned
DEFINITE = frozenset({"job-failed", "order-refused"})
DEFINITE_MAX = 16  # attempts that end so: some two minutes, in which a node may be started anew
STALE = Backoff(first_ms=1, max_ms=1_000)  # a lost race is run again almost at once

T = TypeVar("T")


def must_finish(kind: Kind[Any], record: ProcedureRecord) -> bool:
    """Whether giving up is no option: undoing, or past the point of no return."""
    return record.phase is Phase.UNDO or kind.has_passed(record.trail)


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
    """Wall clock; None: the step may not be given up."""
    if record.phase is Phase.UNDO:
        return None if record.turned_at_ms is None else record.turned_at_ms + UNDO_MS
    return None if kind.has_passed(record.trail) else record.deadline_at_ms


async def within(clock: Clock, deadline_at_ms: int | None, step: str, work: Awaitable[T]) -> T:
    """Ends *work* at *deadline_at_ms*, wall clock. Raises Unavailable("deadline-exceeded").

    What it had begun may still happen: it is a step, so it is undone or run again.
    """
    left_s = None if deadline_at_ms is None else max(0, deadline_at_ms - clock.wall_ms()) / 1000
    try:
        async with asyncio.timeout(left_s) as limit:
            return await work
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise Unavailable("deadline-exceeded", step=step) from error


def rest_ms(kind: Kind[Any], record: ProcedureRecord, now_ms: int) -> int:
    """How long a throttled step still rests, counted from the end of its last run."""
    percent = record.throttle_percent
    if not percent or record.phase is Phase.UNDO or not kind.steps[record.step].paced:
        return 0
    runs = [beat for beat in record.timeline if beat.step == record.step]
    if not runs:
        return 0
    return max(0, runs[-1].at_ms + runs[-1].ms * percent // (100 - percent) - now_ms)


async def retried(
    step: Callable[[], Awaitable[T]],
    ports: Ports,
    live: Live,
    deadline_at_ms: int | None,
    *,
    insists: bool,
) -> T:
    """Calls one step until it has moved. Raises the error for which it must be given up.

    *insists*: no error but NotLeader ends it before the deadline, and what is no MetaError: our own
    mistake. Otherwise a refusal does, too, and the last of DEFINITE_MAX definite failures.
    """
    try:
        return await step()  # as a rule it moves at once: tenacity is told of a failure alone
    except MetaError as error:
        failed = [error]

    async def once_more() -> T:
        if failed:
            raise failed.pop()
        return await step()

    return await _retrying(ports, live, deadline_at_ms, insists=insists)(once_more)


def _retrying(
    ports: Ports, live: Live, deadline_at_ms: int | None, *, insists: bool
) -> AsyncRetrying:
    definite: list[MetaError] = []

    def again(call: RetryCallState) -> bool:
        error = _error(call)
        if not isinstance(error, MetaError) or isinstance(error, NotLeader):
            return False
        if is_definite(error) and len(definite) + 1 >= DEFINITE_MAX:
            return insists
        return insists or is_passing(error)

    def out_of_time(call: RetryCallState) -> bool:
        return deadline_at_ms is not None and ports.clock.wall_ms() >= deadline_at_ms

    def wait_s(call: RetryCallState) -> float:
        error = _error(call)
        assert error is not None
        return pause_ms(error, call.attempt_number, ports.rng.random()) / 1000

    async def sleep(seconds: float) -> None:
        await live.rest(round(seconds * 1000))

    def note(call: RetryCallState) -> None:
        error = _error(call)
        assert isinstance(error, MetaError)
        if is_definite(error):
            definite.append(error)
        live.attempt = call.attempt_number + 1
        live.last_error, live.last_facts = error.code, error.facts

    return AsyncRetrying(
        retry=again, stop=out_of_time, wait=wait_s, sleep=sleep, before_sleep=note, reraise=True
    )


def _error(call: RetryCallState) -> BaseException | None:
    return call.outcome.exception() if call.outcome is not None else None
