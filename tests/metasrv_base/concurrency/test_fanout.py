"""Calls at once, of which the last ones need not be waited for."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from metasrv_base.concurrency.fanout import fan_out_until
from metasrv_base.errors import Refused
from tests.sim.loop import SimClock, SimLoop, run


@dataclass
class Calls:
    """Calls that last some seconds each."""

    clock: SimClock
    over: list[int] = field(default_factory=list)
    """Lengths of those that are over; negative: it was cancelled."""

    async def lasting(self, seconds: int) -> None:
        try:
            await self.clock.sleep_ms(seconds * 1000)
            self.over.append(seconds)
        except asyncio.CancelledError:
            self.over.append(-seconds)
            raise

    async def fanned(self, *lengths: int) -> None:
        """Returns when two are over, but for the first two seconds."""
        calls = [partial(self.lasting, length) for length in lengths]
        await fan_out_until(lambda: len(self.over) >= 2, calls, at_once=3, every_ms=2_000)


def lived(life: Callable[[Calls], Awaitable[None]]) -> None:
    async def main(loop: SimLoop) -> None:
        await life(Calls(SimClock(loop)))

    run(main, 1)


@pytest.mark.parametrize(
    ("lengths", "over", "at"),
    [
        ((1, 1, 1), [1, 1, 1], 1),
        ((0, 1, 9), [0, 1, -9], 2),
        ((1, 5, 9), [1, 5, -9], 6),
        ((3,), [3], 3),
        ((), [], 0),
    ],
    ids=["all in time", "one late", "two late", "too few", "none"],
)
def test_given_enough_that_is_done_when_looked_at_then_the_rest_is_cancelled(
    lengths: tuple[int, ...], over: list[int], at: int
) -> None:
    async def life(calls: Calls) -> None:
        began_ms = calls.clock.mono_ms()
        await calls.fanned(*lengths)
        assert calls.over == over
        assert calls.clock.mono_ms() - began_ms == at * 1000

    lived(life)


def test_given_an_error_when_all_are_over_then_it_is_raised() -> None:
    async def refuse() -> None:
        raise Refused("invalid-request", reason="test")

    async def life(calls: Calls) -> None:
        both: list[Callable[[], Awaitable[None]]] = [refuse, partial(calls.lasting, 3)]
        with pytest.raises(Refused):
            await fan_out_until(lambda: False, both, at_once=2, every_ms=2_000)
        assert calls.over == [3]

    lived(life)


def test_given_a_caller_that_is_cancelled_then_its_calls_are_over_before_it() -> None:
    async def life(calls: Calls) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await calls.fanned(5, 9)
        assert calls.over == [-5, -9]

    lived(life)
