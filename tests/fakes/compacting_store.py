"""A store that an operator compacts at its newest revision, just before something is read."""

from collections.abc import AsyncIterator

from keys.store.kv import Get, KeyPage, Kv, LeaseId, Put, Request, TxnAnswer, Watched

DEADLINE_MS = 5_000


class CompactingStore:
    """Implements keys.store.kv.Kv over another, which may be a real etcd."""

    def __init__(self, kv: Kv) -> None:
        self._kv = kv
        self.left = 0
        """Reads at an old revision that are still to find it compacted."""
        self.compacted = 0

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        if revision and self.left and get.end is not None and not get.count_only:
            self.left -= 1
            self.compacted += 1
            write = Request(writes=(Put(b"__setting/a", b"{}"),))
            answer = await self._kv.txn(write, deadline_ms=deadline_ms)
            await self._kv.compact(answer.revision, deadline_ms=deadline_ms)
        return await self._kv.range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        return await self._kv.txn(request, deadline_ms=deadline_ms)

    def watch(self, key: bytes, end: bytes, *, start_revision: int) -> AsyncIterator[Watched]:
        return self._kv.watch(key, end, start_revision=start_revision)

    async def grant(self, ttl_ms: int, *, deadline_ms: int) -> LeaseId:
        return await self._kv.grant(ttl_ms, deadline_ms=deadline_ms)

    async def keep_alive(self, lease: LeaseId, *, deadline_ms: int) -> bool:
        return await self._kv.keep_alive(lease, deadline_ms=deadline_ms)

    async def revoke(self, lease: LeaseId, *, deadline_ms: int) -> None:
        await self._kv.revoke(lease, deadline_ms=deadline_ms)

    async def compact(self, revision: int, *, deadline_ms: int) -> None:
        await self._kv.compact(revision, deadline_ms=deadline_ms)

    async def close(self) -> None:
        await self._kv.close()
