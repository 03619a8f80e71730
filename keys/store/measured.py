"""A store that says how long each call took, and how it ended."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

from keys.store.kv import OUT_OF_SPACE, Get, KeyPage, Kv, LeaseId, Request, TxnAnswer, Watched
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

T = TypeVar("T")
Tell = Callable[[str, str, int], None]
"""Hears of a call: its name, `ok` or the code of its error, and its time in ms."""


class MeasuredKv:
    """Implements keys.store.kv.Kv. A watch is not a call: it lasts."""

    def __init__(self, kv: Kv, clock: Clock, tell: Tell) -> None:
        self._kv = kv
        self._clock = clock
        self._tell = tell

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        return await self._timed("txn", self._kv.txn(request, deadline_ms=deadline_ms))

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        answer = self._kv.range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )
        return await self._timed("range", answer)

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self._kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self._timed("grant", self._kv.grant(ttl_ms, deadline_ms=deadline_ms))

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self._timed("keep_alive", self._kv.keep_alive(lease, deadline_ms=deadline_ms))

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self._timed("revoke", self._kv.revoke(lease, deadline_ms=deadline_ms))

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self._timed("compact", self._kv.compact(revision, deadline_ms=deadline_ms))

    async def close(self) -> None:
        await self._kv.close()

    async def _timed(self, call: str, answer: Awaitable[T]) -> T:
        """A call whose caller has gone is not counted: nobody knows how it would have ended."""
        began_ms = self._clock.mono_ms()
        try:
            result = await answer
        except MetaError as error:
            full = error.facts.get("reason") == OUT_OF_SPACE
            code = OUT_OF_SPACE if full else error.code
            self._tell(call, code, self._clock.mono_ms() - began_ms)
            raise
        self._tell(call, "ok", self._clock.mono_ms() - began_ms)
        return result
