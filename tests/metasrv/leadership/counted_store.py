"""A store that counts its requests, and what a leader has to remove from it."""

from keys.model.records import (
    IdempotencyKey,
)
from keys.store.kv import TXN_OPS_MAX, Get, KeyPage, Request, TxnAnswer
from keys.store.memory import MemoryKv
from metasrv_base.clock import Clock
from tests.metasrv.api.rig import Server


class CountingKv(MemoryKv):
    """Counts the values and bytes of each page, the writes of each transaction, and the most values
    that one transaction has read."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.pages: list[int] = []
        self.page_bytes: list[int] = []
        self.commits: list[int] = []
        self.read_at_once = 0

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        page = await super().range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )
        self.pages.append(len(page.items))
        self.page_bytes.append(sum(len(item.value) for item in page.items))
        return page

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        assert max(len(request.compares), len(request.writes), len(request.reads)) <= TXN_OPS_MAX
        answer = await super().txn(request, deadline_ms=deadline_ms)
        self.commits += [len(request.writes)] if request.writes else []
        self.read_at_once = max(self.read_at_once, sum(map(len, answer.ranges)))
        return answer

    def forget(self) -> None:
        self.pages, self.page_bytes, self.commits, self.read_at_once = [], [], [], 0


def stored(one: Server, under: tuple[bytes, bytes]) -> dict[bytes, bytes]:
    return {item.key: item.value for item in one.kv.dump() if under[0] <= item.key < under[1]}


def idempotency_keys(one: Server) -> dict[bytes, bytes]:
    return stored(one, IdempotencyKey.under())


def kv_of(one: Server) -> CountingKv:
    assert isinstance(one.kv, CountingKv)
    return one.kv
