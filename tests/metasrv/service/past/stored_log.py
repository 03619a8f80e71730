"""A server whose log is in the store, with few versions in memory and small windows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from keys.catalog import follower
from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import parts_of
from keys.model.log import CatalogUpdate, CatalogUpdateKey
from keys.model.snapshot.snapshots import SnapshotPartKey, SnapshotVersion, SnapshotVersionKey
from keys.store.kv import Delete, Kv, Put, Request
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv.service.past import catch_up
from metasrv.service.state import old_windows
from metasrv.service.state.state import ServerState
from tests.keys.catalog.logs import DEADLINE_MS, first_update, update
from tests.keys.catalog.snapshots import ref_of
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import state_of
from tests.metasrv.service.events.histories import History

KEPT = 6  # versions in memory
WINDOW = 8


def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "VERSIONS_KEPT", KEPT)
    monkeypatch.setattr(old_windows, "WINDOW_VERSIONS", WINDOW)
    monkeypatch.setattr(old_windows, "STRIDE", 2 * WINDOW)
    monkeypatch.setattr(catch_up, "VERSIONS_OF_A_FLUSH", 3)
    monkeypatch.setattr(catch_up, "PAUSE_MS", 0)


@dataclass
class StoredLog:
    """`catalogs`: that of each version, for comparison."""

    state: ServerState
    history: History
    catalogs: list[Catalog] = field(default_factory=lambda: [Catalog()])

    @property
    def version(self) -> int:
        return self.state.follower.catalog.version

    async def grow(self, versions: int) -> None:
        for _ in range(versions):
            await self.add(update(self.version + 1, self.history.entry()))

    async def add(self, made: CatalogUpdate) -> None:
        writes = (Put(bytes(CatalogUpdateKey(made.version)), encode(made)),)
        answer = await self.state.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)
        self.state.follower.log.offer(made, answer.revision)
        self.state.follower.log.heard_at_ms = self.state.clock.mono_ms()
        self.catalogs.append(self.state.follower.catalog)

    async def cut(self, version: int) -> None:
        """Makes a snapshot of *version*, and deletes the log up to it."""
        catalog = self.catalogs[version]
        parts = list(parts_of(catalog))
        puts = tuple(
            Put(bytes(SnapshotPartKey(version, number)), raw) for number, raw in enumerate(parts)
        )
        kept = SnapshotVersion(kept=(ref_of(catalog, parts),))
        adopted = (*puts, Put(bytes(SnapshotVersionKey()), encode(kept)))
        await self.state.kv.txn(Request(writes=adopted), deadline_ms=DEADLINE_MS)
        for number in range(1, version + 1):
            gone = (Delete(bytes(CatalogUpdateKey(number))),)
            await self.state.kv.txn(Request(writes=gone), deadline_ms=DEADLINE_MS)


@asynccontextmanager
async def stored_log(seed: int = 0, kv: Kv | None = None) -> AsyncIterator[StoredLog]:
    """*kv*: the store; None: one in memory."""
    clock = ShiftedClock()
    state = state_of("ms-1", kv or MemoryKv(clock), clock)
    state.follower.log.loaded.set()
    one = StoredLog(state, History(seed))
    await one.add(first_update())
    try:
        async with asyncio.TaskGroup() as tasks:
            rebuilding = tasks.create_task(state.old.run())
            yield one
            rebuilding.cancel()
    except ExceptionGroup as group:
        raise group.exceptions[0] from group
