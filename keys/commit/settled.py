"""Reads of a leader while the keys of a large version are written: they see all of them, or none.

Such a version happens at one revision of the store, and its keys are whole at a later one. A read
at a revision in between would see some of them, so it is read again when all are written.
"""

import asyncio
from collections import deque
from typing import NamedTuple

from keys.store.kv import Get, KeyPage, ReadableStore, Request, TxnAnswer
from metasrv_base.errors import Unavailable

TORN_KEPT = 64  # intervals that are known: more than a read lasts


class Torn(NamedTuple):
    """Revisions of the store at which not all keys of one version were written."""

    start: int
    end: int
    """The first revision at which they were."""


class Settling:
    """Told by the committer; asked by readers of the same term."""

    def __init__(self) -> None:
        self._settled = asyncio.Event()
        self._settled.set()
        self._torn: deque[Torn] = deque(maxlen=TORN_KEPT)
        self._is_lost = False

    def begin(self) -> None:
        """A version may happen from now on whose keys are written after it."""
        self._settled.clear()

    def settle(self, torn: Torn | None) -> None:
        """Ends the wait for the keys. *torn*: the revisions at which some were missing; None: the
        version did not happen."""
        if torn is not None:
            self._torn.append(torn)
        self._settled.set()

    def end(self) -> None:
        """The term is over, perhaps before all keys were written."""
        self._is_lost = not self._settled.is_set()
        self._settled.set()

    async def wait(self) -> None:
        """Raises Unavailable if it will never be known."""
        await self._settled.wait()
        if self._is_lost:
            raise Unavailable(reason="the term is over")

    async def is_whole(self, revision: int) -> bool:
        """Whether all keys of each version up to *revision*, which was just read, were written
        there. Raises as `wait`."""
        await self.wait()
        return not any(start <= revision < end for start, end in self._torn)


class SettledReads:
    """The port `ReadableStore`. A read at a revision that the caller names is given as it is: it
    was found by a read before."""

    def __init__(self, kv: ReadableStore, settling: Settling) -> None:
        self._kv = kv
        self._settling = settling

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        while True:
            await self._settling.wait()
            answer = await self._kv.txn(request, deadline_ms=deadline_ms)
            if request.writes or await self._settling.is_whole(answer.revision):
                return answer

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        while True:
            await self._settling.wait()
            page = await self._kv.range(
                get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
            )
            if revision or await self._settling.is_whole(page.revision):
                return page
