"""Reads of the store, merged as commits are: what waits when one is answered goes together.

Many procedures read a few keys each at the same time. One transaction reads them all at one
revision, and each is given its own keys. A read is linearizable for everybody who asked before it
was sent; so nobody joins one that is on its way.
"""

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from keys.store.kv import TXN_OPS_MAX, Get, KeyPage, ReadableStore, Request, TxnAnswer
from metasrv_base.errors import MetaError, Unavailable

OVER = "the term is over"


@dataclass(frozen=True, slots=True, eq=False)
class _PendingRead:
    reads: tuple[Get, ...]
    deadline_ms: int
    answer: "asyncio.Future[TxnAnswer]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def succeed(self, answer: TxnAnswer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: MetaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class MergedReads:
    """The port `ReadableStore` of one term. `run` sends what waits; a lone read is sent at once."""

    def __init__(self, kv: ReadableStore) -> None:
        self._kv = kv
        self._waiting: deque[_PendingRead] = deque()
        """No longer than the callers that wait."""
        self._in_flight = False
        self._due = asyncio.Event()
        self._ended = False

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        """What compares is sent by itself. Waits for one read before it, at most as long."""
        if request.compares or request.writes or self._ended:
            return await self._kv.txn(request, deadline_ms=deadline_ms)
        if self._in_flight:
            asked = _PendingRead(request.reads, deadline_ms)
            self._waiting.append(asked)
            return await asked.answer
        self._in_flight = True
        try:
            return await self._kv.txn(request, deadline_ms=deadline_ms)
        finally:
            self._landed()

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        return await self._kv.range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )

    async def run(self) -> None:
        """Until the term's task group ends."""
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                await self._send(self._take())
        finally:
            self._ended = True
            for asked in self._waiting:
                asked.fail(Unavailable(reason=OVER))

    def _landed(self) -> None:
        """Nothing is on its way but, if somebody waits, what `run` sends next."""
        self._in_flight = bool(self._waiting)
        if self._in_flight:
            self._due.set()

    async def _send(self, asked: list[_PendingRead]) -> None:
        """One transaction, and what each is told: its own keys, or what happened to all."""
        reads = tuple(dict.fromkeys(get for one in asked for get in one.reads))
        failure: MetaError = Unavailable(reason=OVER)
        try:
            if asked:
                deadline_ms = max(one.deadline_ms for one in asked)
                answer = await self._kv.txn(Request(reads=reads), deadline_ms=deadline_ms)
                found = dict(zip(reads, answer.ranges, strict=True))
                for one in asked:
                    one.succeed(replace(answer, ranges=tuple(found[get] for get in one.reads)))
        except MetaError as error:
            failure = error
        finally:
            for one in asked:
                one.fail(failure)
            self._landed()

    def _take(self) -> list[_PendingRead]:
        """As many as one transaction holds, without those whose callers have gone."""
        taken: list[_PendingRead] = []
        reads: set[Get] = set()
        while self._waiting:
            reads.update(self._waiting[0].reads)
            if taken and len(reads) > TXN_OPS_MAX:
                break
            asked = self._waiting.popleft()
            if not asked.answer.done():
                taken.append(asked)
        return taken
