"""A committer that leads, on a store whose next transactions meet the faults that a test queues."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Read, Snapshot, Txn
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import LeaderKey, LeaderRecord, Sequence, SequenceKey
from keys.model.log import SchemaCreated
from keys.store.kv import Compare, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv_base.errors import NotLeader, Unavailable, Unknown
from tests.sim.loop import SimClock, SimLoop, run

DEADLINE_MS = 3_000
Fault = Callable[["Store", Request], Awaitable[TxnAnswer]]


@dataclass
class Store(MemoryKv):
    """MemoryKv whose next transactions with writes meet the faults that a test has queued."""

    clock: SimClock
    faults: list[Fault] = field(default_factory=list)
    sent: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        MemoryKv.__init__(self, self.clock)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if request.writes:
            self.sent.append(request)
            if self.faults:
                return await self.faults.pop(0)(self, request)
        return await super().txn(request, deadline_ms=deadline_ms)

    async def apply(self, request: Request) -> TxnAnswer:
        return await MemoryKv.txn(self, request, deadline_ms=DEADLINE_MS)


async def lost_request(store: Store, request: Request) -> TxnAnswer:
    raise Unknown()


async def lost_answer(store: Store, request: Request) -> TxnAnswer:
    await store.apply(request)
    raise Unknown()


async def never_sent(store: Store, request: Request) -> TxnAnswer:
    raise Unavailable()


async def lost_answer_and_deposed(store: Store, request: Request) -> TxnAnswer:
    await store.apply(request)
    await elect(store, "rival")
    raise Unknown()


async def deposed(store: Store, request: Request) -> TxnAnswer:
    await elect(store, "rival")
    return await store.apply(request)


async def frozen(store: Store, request: Request) -> TxnAnswer:
    await asyncio.get_running_loop().create_future()
    raise AssertionError("unreachable")


async def elect(store: Store, name: str) -> Compare:
    key = bytes(LeaderKey())
    value = encode(LeaderRecord(server=name, url="http://127.0.0.1:1", lease="1"))
    answer = await store.apply(Request(writes=(Put(key, value),)))
    return Compare(key, answer.revision)


@dataclass
class World:
    """A bootstrapped store and a committer that leads."""

    loop: SimLoop
    store: Store
    fence: Compare
    committer: Committer

    @classmethod
    async def made(cls, loop: SimLoop) -> "World":
        store = Store(SimClock(loop))
        fence = await elect(store, "meta-1")
        await store.apply(bootstrap_request(fence, "c", store.clock.wall_ms()))
        line = await read_log_head(store, fence, deadline_ms=DEADLINE_MS)
        committer = Committer(store, store.clock, line, deadline_ms=DEADLINE_MS)
        return cls(loop, store, fence, committer)

    def value(self, key: bytes) -> bytes | None:
        return next((item.value for item in self.store.dump() if item.key == key), None)


def led(scenario: Callable[[World], Awaitable[None]]) -> None:
    """Runs *scenario* beside a committer, whose end by NotLeader is no failure."""

    async def main(loop: SimLoop) -> None:
        world = await World.made(loop)
        line = loop.spawn("leader", world.committer.run())
        await scenario(world)
        if line.done():
            assert isinstance(line.exception(), NotLeader)

    run(main, 1)


def schema(name: str, *, seen: int = 0) -> Txn:
    info = SchemaInfo(schema_id=2000, catalog="main", name=name, created_at_ms=1)
    key = SchemaNameKey("main", name)
    read = Snapshot(seen, {bytes(key): Read(info if seen else None, seen)})
    return change(read, SchemaCreated(info=info))


def count(name: str, following: int, *, seen: int = 0) -> Txn:
    """A change that is no metadata."""
    key = SequenceKey(name)
    return Txn().expecting(key, seen).put(key, Sequence(next=following))
