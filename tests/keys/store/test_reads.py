"""Reads that wait for one another go together, and each caller hears of its own keys alone."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from keys.store.kv import TXN_OPS_MAX, Get, KeyPage, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.store.reads import MergedReads
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError, Unavailable

DEADLINE_MS = 1_000


def key(number: int) -> bytes:
    return f"k/{number:04}".encode()


async def settle() -> None:
    """Until everybody has gone as far as the store lets them."""
    for _ in range(10):
        await asyncio.sleep(0)


@dataclass
class HeldKv:
    """A store in which each read waits until it is let go, or fails with what is said."""

    kv: MemoryKv
    sent: list[Request] = field(default_factory=list)
    gates: list["asyncio.Future[MetaError | None]"] = field(default_factory=list)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        self.sent.append(request)
        gate: asyncio.Future[MetaError | None] = asyncio.get_running_loop().create_future()
        self.gates.append(gate)
        error = await gate
        if error is not None:
            raise error
        return await self.kv.txn(request, deadline_ms=deadline_ms)

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        raise AssertionError("not asked here")

    async def answer(self, number: int, error: MetaError | None = None) -> None:
        """Read *number*, once it has been sent."""
        await settle()
        self.gates[number].set_result(error)


Asking: TypeAlias = "asyncio.Task[list[bytes] | MetaError]"


@dataclass
class World:
    held: HeldKv
    ask: Callable[..., Asking]
    """By numbers of keys: their values, or what was raised."""
    running: "asyncio.Task[None]"


async def values(reads: MergedReads, numbers: tuple[int, ...]) -> list[bytes] | MetaError:
    request = Request(reads=tuple(Get(key(number)) for number in numbers))
    try:
        answer = await reads.txn(request, deadline_ms=DEADLINE_MS)
    except MetaError as error:
        return error
    return [found.value for each in answer.ranges for found in each]


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    kv = MemoryKv(SystemClock())
    for start in range(0, 300, 100):
        writes = tuple(Put(key(n), b"%d" % n) for n in range(start, start + 100))
        await kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)
    held = HeldKv(kv)
    reads = MergedReads(held)
    async with asyncio.TaskGroup() as tasks:

        def ask(*numbers: int) -> Asking:
            return tasks.create_task(values(reads, numbers))

        running = tasks.create_task(reads.run())
        yield World(held, ask, running)
        running.cancel()


async def test_given_a_read_on_its_way_when_others_ask_then_they_go_together_and_later() -> None:
    async with world() as at:
        first, second, third = at.ask(1), at.ask(2, 1), at.ask(3)
        await settle()
        assert len(at.held.sent) == 1, "nobody joins a read that was sent before it asked"

        await at.held.answer(0)
        await at.held.answer(1)

        assert await first == [b"1"]
        assert await second == [b"2", b"1"]
        assert await third == [b"3"]
    assert [len(request.reads) for request in at.held.sent] == [1, 3]


async def test_given_what_one_transaction_cannot_hold_when_read_then_the_rest_goes_next() -> None:
    async with world() as at:
        first = at.ask(0)
        others = [at.ask(n, n + 1) for n in range(1, 1 + 2 * TXN_OPS_MAX, 2)]
        await settle()
        for number in range(3):
            await at.held.answer(number)

        assert await first == [b"0"]
        assert [await other for other in others] == [
            [b"%d" % n, b"%d" % (n + 1)] for n in range(1, 1 + 2 * TXN_OPS_MAX, 2)
        ]
    assert [len(request.reads) for request in at.held.sent] == [1, TXN_OPS_MAX, TXN_OPS_MAX]


async def test_given_a_store_that_fails_when_read_together_then_each_hears_it() -> None:
    async with world() as at:
        first = at.ask(1)
        others = [at.ask(2), at.ask(3)]
        await settle()
        await at.held.answer(0)
        error = Unavailable(reason="silent")
        await at.held.answer(1, error)

        assert await first == [b"1"]
        assert [await other for other in others] == [error, error]


async def test_given_callers_that_have_gone_when_others_ask_then_they_are_answered() -> None:
    async with world() as at:
        first, gone, last = at.ask(1), at.ask(2), at.ask(3)
        await settle()
        first.cancel()
        gone.cancel()
        await at.held.answer(1)

        assert await last == [b"3"]
    assert [len(request.reads) for request in at.held.sent] == [1, 1]


async def test_given_a_term_that_ends_when_reads_wait_then_none_hangs() -> None:
    async with world() as at:
        first, second = at.ask(1), at.ask(2)
        await settle()
        at.running.cancel()
        await asyncio.wait([at.running])

        assert isinstance(await second, Unavailable)
        await at.held.answer(0)
        assert await first == [b"1"]
        late = at.ask(3)
        await at.held.answer(1)
        assert await late == [b"3"]
