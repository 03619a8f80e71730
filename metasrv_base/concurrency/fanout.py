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
