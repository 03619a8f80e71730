"""A rebuild whose revision is compacted under it begins again, a bounded number of times."""

import pytest

from keys.catalog.log.revision_pins import RESTARTS_MAX, RevisionPins, revision_pins
from keys.model.snapshot.snapshots import SnapshotPartKey
from keys.store.kv import Get, KeyPage, Put, Request
from keys.store.memory import MemoryKv
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.leadership.snapshot_requests import SnapshotRequest
from metasrv.service.state import old_versions
from metasrv.service.state.old_versions import StoredBases
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable
from tests.keys.catalog.snapshots import plain
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader

PARTS = SnapshotPartKey.under()


class CompactedKv(MemoryKv):
    """Is written and compacted just before a part of a snapshot is read, `left` times."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.left = 0
        self.pinned: list[int] = []

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        if PARTS.start <= get.key < b"__catalog/snapshot/v":
            pins = await revision_pins(self, deadline_ms=deadline_ms)
            self.pinned += [pin.revision for pin in pins]
            if self.left:
                self.left -= 1
                write = Put(b"__setting/a", b"{}")
                await self.txn(Request(writes=(write,)), deadline_ms=deadline_ms)
                await self.compact(self.revision, deadline_ms=deadline_ms)
        return await super().range(
            get, deadline_ms=deadline_ms, revision=revision, serializable=serializable
        )


async def with_a_snapshot(one: Server) -> CompactedKv:
    await one.make("a")
    task = LogCompaction(one.term, one.kv, one.state.follower, one.clock)
    await task.compact(SnapshotRequest(drops_history=False))
    assert isinstance(one.kv, CompactedKv)
    return one.kv


async def test_given_a_store_that_is_compacted_while_a_base_is_read_then_it_begins_again() -> None:
    async with leader(make_kv=CompactedKv) as one:
        kv = await with_a_snapshot(one)
        bases = StoredBases(kv, DEADLINE_MS)
        kv.left = RESTARTS_MAX

        catalog = await bases.load(one.version)

        assert kv.left == 0
        assert plain(catalog) == plain(one.state.follower.catalog)


async def test_given_one_compaction_too_many_then_not_ready_and_no_end_of_history() -> None:
    async with leader(make_kv=CompactedKv) as one:
        kv = await with_a_snapshot(one)
        bases = StoredBases(kv, DEADLINE_MS)
        kv.left = RESTARTS_MAX + 1

        with pytest.raises(Unavailable) as raised:
            await bases.load(one.version)
        assert raised.value.code == "not-ready"


async def test_given_a_large_snapshot_then_its_revision_is_pinned_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(old_versions, "PINNED_BYTES", 1)
    async with leader(make_kv=CompactedKv) as one:
        kv = await with_a_snapshot(one)
        state = one.state
        pins = RevisionPins(kv, state.clock, state.ids, "m1", DEADLINE_MS)
        before = kv.revision

        catalog = await StoredBases(kv, DEADLINE_MS, pins).load(one.version)

        assert plain(catalog) == plain(state.follower.catalog)
        assert set(kv.pinned) == {before}
        assert await revision_pins(kv, deadline_ms=DEADLINE_MS) == ()
