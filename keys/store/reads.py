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
        """Sends *request*, merged with waiting reads if it only reads. A read waits for at most
        one read before it; a request with compares or writes is sent by itself at once."""
        if request.compares or request.writes or self._ended:
            return await self._kv.txn(request, deadline_ms=deadline_ms)
        if self._in_flight:
            pending = _PendingRead(request.reads, deadline_ms)
            self._waiting.append(pending)
            return await pending.answer
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
        """Sends waiting reads until the term's task group ends."""
        try:
            while True:
                await self._due.wait()
                self._due.clear()
                await self._send(self._take())
        finally:
            self._ended = True
            for pending in self._waiting:
                pending.fail(Unavailable(reason=OVER))

    def _landed(self) -> None:
        """Notes the end of a read; wakes `run` if others wait."""
        self._in_flight = bool(self._waiting)
        if self._in_flight:
            self._due.set()

    async def _send(self, group: list[_PendingRead]) -> None:
        """Sends the reads of *group* in one transaction. Each read gets the items of its own
        keys; an error goes to all."""
        reads = tuple(dict.fromkeys(get for pending in group for get in pending.reads))
        failure: MetaError = Unavailable(reason=OVER)
        try:
            if group:
                deadline_ms = max(pending.deadline_ms for pending in group)
                answer = await self._kv.txn(Request(reads=reads), deadline_ms=deadline_ms)
                items_by_get = dict(zip(reads, answer.ranges, strict=True))
                for pending in group:
                    pending.succeed(
                        replace(answer, ranges=tuple(items_by_get[get] for get in pending.reads))
                    )
        except MetaError as error:
            failure = error
        finally:
            for pending in group:
                pending.fail(failure)
            self._landed()

    def _take(self) -> list[_PendingRead]:
        """Takes as many waiting reads as one transaction holds, without those whose callers have
        gone."""
        batch: list[_PendingRead] = []
        reads: set[Get] = set()
        while self._waiting:
            reads.update(self._waiting[0].reads)
            if batch and len(reads) > TXN_OPS_MAX:
                break
            pending = self._waiting.popleft()
            if not pending.answer.done():
                batch.append(pending)
        return batch
