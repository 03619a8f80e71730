"""Long pure work that takes turns: a generator, which yields where others may go first.

What it computes is what it returns. It stays a function of values, and whoever runs it chooses:
`by_turns` on an event loop, `at_once` where nobody waits.
"""

import asyncio
from collections.abc import Callable, Generator, Iterable, Iterator
from heapq import merge
from itertools import islice
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Turns: TypeAlias = Generator[None, None, T]

TURN = 512  # items of one turn, where each takes some microseconds


def slices(items: Iterable[T], size: int = TURN) -> Iterator[tuple[T, ...]]:
    """*items* in order, *size* at a time; the last slice may be shorter, and is not empty."""
    left = iter(items)
    while part := tuple(islice(left, size)):
        yield part


def sorting(items: Iterable[T], key: Callable[[T], bytes]) -> Turns[tuple[T, ...]]:
    """Sorts *items* by *key*, as `sorted` does; TURN of them in a turn."""
    runs = list[list[T]]()
    for some in slices(items):
        runs.append(sorted(some, key=key))
        yield
    if len(runs) == 1:
        return tuple(runs[0])
    merged = list[T]()
    for some in slices(merge(*runs, key=key)):
        merged += some
        yield
    return tuple(merged)


async def by_turns(work: Turns[T]) -> T:
    """Runs *work*, yields to other tasks between its turns, and returns its result. Data of
    others that *work* reads may change at each turn."""
    while True:
        try:
            next(work)
        except StopIteration as over:
            result: T = over.value
            return result
        await asyncio.sleep(0)


def at_once(work: Turns[T]) -> T:
    """Runs *work* without yielding to other tasks, and returns its result."""
    while True:
        try:
            next(work)
        except StopIteration as over:
            result: T = over.value
            return result
