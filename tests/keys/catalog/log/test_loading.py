"""An operator compacts etcd under a backup, a server that loads, a rebuild of an old version."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.log import loading
from keys.catalog.log.revision_pins import (
    PIN_MS,
    RESTARTS_MAX,
    RevisionPins,
    StoredRevisionPin,
    revision_pins,
)
from keys.catalog.snapshot_writing import SnapshotWriter
from keys.commit.bootstrap import bootstrap_request
from keys.commit.change import change
from keys.commit.committer import Committer
from keys.commit.log_head import read_log_head
from keys.commit.txn import Read, Snapshot
from keys.key import Range
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import ClusterKey, LeaderKey, LeaderRecord
from keys.model.log import SchemaCreated
from keys.store.etcd import EtcdKv
from keys.store.kv import Compare, Delete, Get, KeyPage, Kv, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.store.scan import scan
from keys.value import encode
from metasrv.api.http.metrics import ServerMetrics
from metasrv.service.cluster import backups
from metasrv.service.state import old_versions
from metasrv.service.state.old_versions import StoredBases
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.ids import RandomIds
from tests.fakes.clock import FakeClock
from tests.fakes.compacting_store import CompactingStore
from tests.keys.catalog.snapshots import plain
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import DEADLINE_MS, state_of

UPDATES = 12
KEYS = 400
READ_MS = 100_000


@dataclass
class Filled:
    """A cluster with a snapshot and a log above it."""

    kv: CompactingStore
    clock: Clock
    catalog: Catalog
    snapshot: int

    def pins(self) -> RevisionPins:
        return RevisionPins(self.kv, self.clock, RandomIds(self.clock), "m1", DEADLINE_MS)


async def _filled(kv: CompactingStore, clock: Clock) -> Filled:
    seat = Put(bytes(LeaderKey()), encode(LeaderRecord(server="m", url="http://m", lease="1")))
    led = await kv.txn(Request(writes=(seat,)), deadline_ms=DEADLINE_MS)
    fence = Compare(seat.key, led.revision)
    await kv.txn(bootstrap_request(fence, "c", clock.wall_ms()), deadline_ms=DEADLINE_MS)
    follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
    await follower.log.load()
    head = await read_log_head(kv, fence, deadline_ms=DEADLINE_MS)
    committer = Committer(kv, clock, head, deadline_ms=DEADLINE_MS)
    follower.log.lead(committer)
    snapshot = 0
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(committer.run())
        for number in range(2, 2 + UPDATES):
            info = SchemaInfo(schema_id=number, catalog="main", name=f"s{number}", created_at_ms=1)
            read = Snapshot(0, {bytes(SchemaNameKey("main", info.name)): Read(None, 0)})
            await committer.commit(change(read, SchemaCreated(info=info)))
            if number == UPDATES // 2:
                writer = SnapshotWriter(kv, committer, deadline_ms=DEADLINE_MS)
                snapshot = follower.catalog.version
                assert await writer.save(follower.catalog, log_bytes=1, now_ms=1)
        running.cancel()
    writes = tuple(Put(b"__setting/s%05d" % number, b"{}") for number in range(100))
    for first in range(0, KEYS, 100):
        puts = tuple(put._replace(key=b"%s-%d" % (put.key, first)) for put in writes)
        await kv.txn(Request(writes=puts), deadline_ms=DEADLINE_MS)
    return Filled(kv, clock, follower.catalog, snapshot)


@pytest.fixture(params=["memory", pytest.param("etcd", marks=pytest.mark.etcd)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Kv]:
    if request.param == "memory":
        yield MemoryKv(FakeClock())
        return
    etcd, prefix = request.getfixturevalue("etcd"), request.getfixturevalue("etcd_prefix")
    kv = await EtcdKv.connect([etcd], prefix)
    yield kv
    await kv.close()


@pytest.fixture
async def filled(store: Kv, monkeypatch: pytest.MonkeyPatch) -> Filled:
    monkeypatch.setattr(loading, "PINNED_BYTES", 1)
    monkeypatch.setattr(old_versions, "PINNED_BYTES", 1)
    monkeypatch.setattr(loading, "PAUSE_MS", 0)
    return await _filled(CompactingStore(store), FakeClock())


async def test_given_a_store_that_is_compacted_while_a_server_loads_then_it_begins_again(
    filled: Filled,
) -> None:
    pins = filled.pins()
    server = Follower(filled.kv, filled.clock, deadline_ms=DEADLINE_MS, pins=pins)
    filled.kv.left = RESTARTS_MAX

    with capture_logs() as logs:
        await server.log.start()

    told = [(each["attempt"], each["reason"]) for each in logs if "attempt" in each]
    assert filled.kv.compacted == RESTARTS_MAX
    assert plain(server.catalog) == plain(filled.catalog)
    assert [attempt for attempt, _ in told] == [1, 2, 3, 4, 5]
    assert all("history-expired" in reason for _, reason in told), told
    assert await revision_pins(filled.kv, deadline_ms=DEADLINE_MS) == ()
    assert pins.held == {}


async def test_given_one_compaction_too_many_when_a_server_loads_then_it_ends_and_says_so(
    filled: Filled,
) -> None:
    server = Follower(filled.kv, filled.clock, deadline_ms=DEADLINE_MS, pins=filled.pins())
    filled.kv.left = RESTARTS_MAX + 1

    with capture_logs() as logs, pytest.raises(Unavailable) as raised:
        await server.log.follow()

    assert (raised.value.code, logs[-1]["event"]) == ("not-ready", "catalog_load_failed")
    assert not server.log.loaded.is_set()
    assert await revision_pins(filled.kv, deadline_ms=DEADLINE_MS) == ()


async def test_given_a_store_that_is_compacted_while_a_base_is_read_then_the_rebuild_begins_again(
    filled: Filled,
) -> None:
    pins = filled.pins()
    filled.kv.left = RESTARTS_MAX

    catalog = await StoredBases(filled.kv, DEADLINE_MS, pins).load(filled.snapshot)

    assert catalog.version == filled.snapshot
    assert filled.kv.compacted == pins.restarts["rebuild"] == RESTARTS_MAX
    assert pins.held == {}


async def test_given_a_store_that_is_compacted_while_a_backup_is_sent_then_the_next_is_whole(
    filled: Filled,
) -> None:
    state = state_of("m1", filled.kv, ShiftedClock())
    cut = await backups.begun(state)
    parts = cut.parts()
    sent = await anext(parts) + await anext(parts)
    filled.kv.left = 1
    sent += b"".join([part async for part in parts])
    cut.ended()
    again = await backups.begun(state)
    whole = b"".join([part async for part in again.parts()])
    everything, _ = await scan(
        filled.kv, Range(b"", b"\0"), deadline_ms=DEADLINE_MS, revision=again.header.revision
    )

    with pytest.raises(MetaError) as raised:
        _read(sent)
    assert raised.value.code == "history-expired"
    assert _read(whole) == {item.key.decode() for item in everything}
    assert 'metasrv_reader_restarts{reader="backup"} 1.0' in ServerMetrics().text(state).decode()


def _read(data: bytes) -> set[str]:
    reader = BackupReader()
    keys = {key.key for key in reader.feed(data)}
    reader.close()
    return keys


class SlowStore(CompactingStore):
    """Each read at an old revision takes 100 s; notes the pins that hold behind it, and for how
    long they hold in the end."""

    def __init__(self, kv: Kv, clock: FakeClock) -> None:
        super().__init__(kv)
        self._clock = clock
        self.living: list[list[str]] = []
        self.held_ms: list[int] = []

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        page = await super().range(get, deadline_ms=deadline_ms, revision=revision)
        if revision and get.end is not None:
            self._clock.advance(READ_MS)
            now_ms, pins = self._clock.wall_ms(), await self._pins()
            self.living.append([pin.value.what for pin in pins if pin.lives(now_ms)])
        return page

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        if any(isinstance(write, Delete) for write in request.writes):
            pins = [pin.value for pin in await self._pins()]
            self.held_ms += [pin.expires_at_ms - pin.since_ms for pin in pins]
        return await super().txn(request, deadline_ms=deadline_ms)

    async def _pins(self) -> tuple[StoredRevisionPin, ...]:
        return await revision_pins(self._kv, deadline_ms=DEADLINE_MS)


async def test_given_a_store_that_is_slow_when_a_server_loads_then_its_pin_is_renewed(
    filled: Filled,
) -> None:
    clock = FakeClock()
    slow = SlowStore(filled.kv, clock)
    pins = RevisionPins(slow, clock, RandomIds(clock), "m1", DEADLINE_MS)
    server = Follower(slow, clock, deadline_ms=DEADLINE_MS, pins=pins)

    await server.log.load()

    assert len(slow.living) >= 2, "the snapshot, and the log above it"
    assert len(slow.living) * READ_MS > PIN_MS
    assert slow.living == [["a server that loads"]] * len(slow.living)
    assert plain(server.catalog) == plain(filled.catalog)


async def test_given_a_store_that_is_slow_when_a_base_is_read_then_its_pin_is_renewed(
    filled: Filled,
) -> None:
    clock = FakeClock()
    slow = SlowStore(filled.kv, clock)
    pins = RevisionPins(slow, clock, RandomIds(clock), "m1", DEADLINE_MS)

    await StoredBases(slow, DEADLINE_MS, pins).load(filled.snapshot)

    assert slow.living == [[f"a rebuild from version {filled.snapshot}"]]
    assert slow.held_ms == [READ_MS + PIN_MS]


async def test_given_a_pin_then_metrics_tell_its_age_and_none_when_it_is_released() -> None:
    clock = ShiftedClock()
    state, metrics = state_of("m1", MemoryKv(clock), clock), ServerMetrics()
    async with state.pins.pinned("a test"):
        clock.ahead_ms += 7_000
        held = metrics.text(state).decode()
    released = metrics.text(state).decode()

    assert "metasrv_revision_pins 1.0" in held
    assert "metasrv_revision_pin_oldest_seconds 7." in held
    assert "metasrv_revision_pins 0.0" in released
    assert "metasrv_revision_pin_oldest_seconds 0.0" in released


async def test_given_an_empty_prefix_when_a_server_loads_then_it_stays_empty(store: Kv) -> None:
    clock = FakeClock()
    pins = RevisionPins(store, clock, RandomIds(clock), "m1", DEADLINE_MS)
    server = Follower(store, clock, deadline_ms=DEADLINE_MS, pins=pins)

    await server.log.start()

    assert (await scan(store, Range(b"", b"\0"), deadline_ms=DEADLINE_MS))[0] == ()


async def test_given_a_log_of_which_a_restore_wrote_a_part_then_a_load_writes_nothing(
    filled: Filled,
) -> None:
    """There is no cluster before the last transaction of a restore."""
    gone = Request(writes=(Delete(bytes(ClusterKey())),))
    before = (await filled.kv.txn(gone, deadline_ms=DEADLINE_MS)).revision

    await Follower(filled.kv, filled.clock, deadline_ms=DEADLINE_MS, pins=filled.pins()).log.load()

    items, _ = await scan(filled.kv, Range(b"", b"\0"), deadline_ms=DEADLINE_MS)
    assert max(item.mod_revision for item in items) < before
