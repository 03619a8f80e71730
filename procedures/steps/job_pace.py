"""The rate that an operator sets, passed to jobs while they run.

A rate holds for all jobs of a procedure together: the driver lets them take rows from one bucket.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from metasrv_base.concurrency.fanout import fan_out
from procedures.context import Context
from procedures.elements.reorg_pace import of_operator

LOOK_MS = 1_000  # between looks whether an operator wants another rate

T = TypeVar("T")


async def run_at_pace(context: Context, jobs: Sequence[str], work: Callable[[], Awaitable[T]]) -> T:
    """Returns or raises what *work* does, which runs *jobs*. Each job is begun with the rate that
    is set then; a change is passed to all of them within LOOK_MS."""
    over = asyncio.Event()
    rate = _shown(context)

    async def run() -> T | None:
        try:
            return await work()
        finally:
            over.set()

    async def keep_rate() -> None:
        nonlocal rate
        while not over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_MS / 1_000):
                    await over.wait()
            if not over.is_set() and _shown(context) != rate:
                rate = _shown(context)
                for job in jobs:
                    await context.ports.jobs.throttle(job, rate)

    result, _ = await fan_out([run, keep_rate], at_once=2)
    assert result is not None, "it has ended without an error"
    return result


def _shown(context: Context) -> int | None:
    """The rate in rows per second, which people are shown from now on; None: there is none."""
    rate = context.wanted_rows_per_s()
    if rate != context.live.pace.rows_per_s:
        context.live.pace = of_operator(rate, context.ports.clock.mono_ms())
    return rate
