"""A store under test, and short words for what the tests say all the time."""

from dataclasses import dataclass

from keys.store.kv import Delete, Get, KeyValue, Kv, LeaseId, Put, Request, TxnAnswer, Watched
from tests.fakes.clock import FakeClock

DEADLINE_MS = 5_000
EVERYTHING = Get(b"", b"\0")


@dataclass
class Store:
    """`clock` None: a real etcd, which has its own."""

    kv: Kv
    clock: FakeClock | None

    def let_pass(self, ms: int) -> None:
        if self.clock:
            self.clock.advance(ms)

    async def write(self, *writes: Put | Delete) -> int:
        answer = await self.txn(Request(writes=writes))
        assert answer.succeeded
        return answer.revision

    async def put(self, key: bytes, value: bytes = b"v", lease: LeaseId | None = None) -> int:
        return await self.write(Put(key, value, lease))

    async def txn(self, request: Request) -> TxnAnswer:
        return await self.kv.txn(request, deadline_ms=DEADLINE_MS)

    async def everything(self) -> tuple[KeyValue, ...]:
        page = await self.kv.range(EVERYTHING, deadline_ms=DEADLINE_MS)
        return page.items

    async def watched(self, count: int, start_revision: int) -> list[Watched]:
        """The first *count* deliveries over all keys, progress left out."""
        found: list[Watched] = []
        watch = self.kv.watch(b"", b"\0", start_revision=start_revision)
        async for each in watch:
            found += [each] if each.events else []
            if len(found) == count:
                break
        return found
