"""The queue of one committer: changes that arrived, and those that the next batch is filled from.

When several share batches, the next one waits while more arrive with each turn of the event loop:
their steps are ready to run, and a batch costs the leader as much as a whole create
(docs/decisions/0355-a-batch-waits-for-what-is-about-to-arrive.md). A single change waits for
nobody.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from keys.store.kv import TXN_OPS_MAX

WAITING_MAX = 4_096  # members in the queue: more than every running procedure can hold at once
LOOKED_AT_MAX = 2 * TXN_OPS_MAX  # of those, for one batch: each member writes a key or more
TURNS_MAX, WAIT_S_MAX = 30, 0.05
"""Turns of the event loop, and seconds of its clock, for which a batch waits while more arrive."""
EMPTY_TURNS_MAX = 2  # of those, that bring nobody: a step has such turns between two of its acts


class Waiter(Protocol):
    """A member with the future in which its caller waits."""

    @property
    def answer(self) -> "asyncio.Future[Any]": ...


W = TypeVar("W", bound=Waiter)


class CommitQueue(Generic[W]):
    """Owned by its committer; `put` is what callers use."""

    def __init__(self) -> None:
        self._arriving: asyncio.Queue[W] = asyncio.Queue(WAITING_MAX)
        self.waiting: deque[W] = deque()
        """Members in order; those that a batch left behind come first in the next."""
        self._shares = False
        """Whether the last batch had several members."""

    async def put(self, member: W) -> None:
        """Waits for room."""
        await self._arriving.put(member)

    async def fill(self) -> None:
        """Returns once somebody waits; where several do, once no more are about to arrive."""
        await self._first()
        if self._shares or len(self.waiting) > 1:
            await self._others()

    async def _first(self) -> None:
        while not self._look():
            self.waiting.append(await self._arriving.get())

    async def _others(self) -> None:
        loop, empty = asyncio.get_running_loop(), 0
        until_s = loop.time() + WAIT_S_MAX
        for _ in range(TURNS_MAX):
            before = self._arriving.qsize()
            await asyncio.sleep(0)
            empty += self._arriving.qsize() == before
            if empty == EMPTY_TURNS_MAX or loop.time() > until_s:
                break
        await self._first()

    def _look(self) -> bool:
        """Moves what has arrived, and forgets those whose callers have gone. Returns whether
        anybody waits."""
        while len(self.waiting) < LOOKED_AT_MAX and not self._arriving.empty():
            self.waiting.append(self._arriving.get_nowait())
        self.waiting = deque(member for member in self.waiting if not member.answer.done())
        return bool(self.waiting)

    def take(self, places: Iterable[int]) -> Sequence[W]:
        """Takes the members of a batch out, by their places in `waiting`."""
        chosen = dict.fromkeys(places)
        waiting = list(self.waiting)
        self.waiting = deque(
            member for position, member in enumerate(waiting) if position not in chosen
        )
        self._shares = len(chosen) > 1
        return [waiting[position] for position in chosen]

    def leave(self) -> Sequence[W]:
        """Takes everybody out, at the end of the term."""
        left = list(self.waiting)
        self.waiting.clear()
        while not self._arriving.empty():
            left.append(self._arriving.get_nowait())
        return left
