"""A store whose calls fail as a script says: never sent, answer lost, late, or the caller dies."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from keys.store.kv import Get, KeyPage, Kv, LeaseId, Request, TxnAnswer, Watched
from metasrv_base.errors import Conflict, Unavailable, Unknown

T = TypeVar("T")


class Fault(StrEnum):
    """The fault of one call."""

    NONE = "none"
    NEVER_SENT = "never_sent"
    """Nothing is done, and the caller is not told which."""
    ANSWER_LOST = "answer_lost"
    """Done; the caller is not told."""
    LATE = "late"
    """The caller is not told; it is done when the script says `deliver`."""
    CRASH_BEFORE = "crash_before"
    CRASH_AFTER = "crash_after"


@dataclass(frozen=True, slots=True)
class Call:
    """`number` counts the calls of this store from 1. `request` only of a transaction."""

    number: int
    name: str
    writes: bool
    request: Request | None = None


# Decides before the call. May itself act on the sound store: elect a rival, wait.
Script = Callable[[Call], Awaitable[Fault]]


async def soundly(_call: Call) -> Fault:
    """The script of a store without faults."""
    return Fault.NONE


class FaultyKv:
    """Implements keys.store.kv.Kv around another one. Watches and `close` are passed through.

    `die` ends the caller's node and never returns (SimLoop.crash).
    """

    def __init__(
        self, kv: Kv, script: Script = soundly, die: Callable[[], Awaitable[NoReturn]] | None = None
    ) -> None:
        self._kv = kv
        self._script = script
        self._die = die
        self._late: list[Callable[[], Awaitable[Any]]] = []
        self.calls: list[Call] = []
        """Every call so far, faulty ones too."""

    async def deliver(self) -> None:
        """Delivers the late calls, in order. Nobody waits for their answers."""
        late, self._late = self._late, []
        for send in late:
            try:
                await send()
            except (Conflict, Unavailable):
                continue  # refused, and nobody is there to hear it

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        return await self._call(
            "txn",
            lambda: self._kv.txn(request, deadline_ms=deadline_ms),
            writes=bool(request.writes),
            request=request,
        )

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        return await self._call(
            "range",
            lambda: self._kv.range(
                get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
            ),
            writes=False,
        )

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self._kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self._call("grant", lambda: self._kv.grant(ttl_ms, deadline_ms=deadline_ms))

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self._call(
            "keep_alive", lambda: self._kv.keep_alive(lease, deadline_ms=deadline_ms)
        )

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self._call("revoke", lambda: self._kv.revoke(lease, deadline_ms=deadline_ms))

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self._call("compact", lambda: self._kv.compact(revision, deadline_ms=deadline_ms))

    async def close(self) -> None:
        await self._kv.close()

    async def _call(
        self,
        name: str,
        send: Callable[[], Awaitable[T]],
        *,
        writes: bool = True,
        request: Request | None = None,
    ) -> T:
        call = Call(len(self.calls) + 1, name, writes, request)
        self.calls.append(call)
        fault = await self._script(call)
        if fault is Fault.CRASH_BEFORE:
            await self._crash()
        if fault is Fault.LATE:
            self._late.append(send)
        if fault in {Fault.LATE, Fault.NEVER_SENT}:
            raise _untold(call)
        answer = await send()
        if fault is Fault.CRASH_AFTER:
            await self._crash()
        if fault is Fault.ANSWER_LOST:
            raise _untold(call)
        return answer

    async def _crash(self) -> NoReturn:
        assert self._die, "a crash needs a node that can die"
        await self._die()
        raise AssertionError("a dead node ran")


def _untold(call: Call) -> Unknown | Unavailable:
    facts = {"call": call.name, "number": call.number}
    return Unknown(**facts) if call.writes else Unavailable(**facts)
