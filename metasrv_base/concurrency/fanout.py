"""Many calls at once, boundedly, and all of them over when it returns."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def fan_out(calls: Iterable[Callable[[], Awaitable[T]]], *, at_once: int) -> list[T]:
    """Their results, in order. Waits for all; then raises the first error, if there was one."""
    waiting = list(calls)
    if len(waiting) == 1:  # it needs no task of its own
        return [await waiting[0]()]
    gate = asyncio.Semaphore(at_once)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await call()

    results: list[T] = []
    for result in await asyncio.gather(*map(one, waiting), return_exceptions=True):
        if isinstance(result, BaseException):
            try:
                raise result
            finally:
                del result  # this frame stands in its traceback: a cycle, which only gc would free
        results.append(result)
    return results


async def fan_out_until(
    suffices: Callable[[], bool],
    calls: Iterable[Callable[[], Awaitable[object]]],
    *,
    at_once: int,
    every_ms: int,
) -> None:
    """Waits for all calls, as `fan_out`, or until what they have done *suffices*: it is looked at
    every *every_ms*, and the calls that are left then are cancelled."""
    work = asyncio.gather(fan_out(calls, at_once=at_once))
    try:
        while not (await asyncio.wait([work], timeout=every_ms / 1000))[0]:
            if suffices():
                return
        await work
    finally:
        if not work.done():
            work.cancel()
            await asyncio.wait([work])
            work.exception()  # that it was ended: looked at
