"""The leader's compaction: the log is cut where nobody needs it, and nowhere else."""

from typing import Any

import pytest

from keys.catalog.follower import Follower
from keys.model.holders import HolderRecord
from keys.model.log import CatalogUpdateKey
from keys.model.snapshot.pins import CatalogPin, CatalogPinKey
from keys.model.snapshot.snapshots import SnapshotPartKey
from keys.store.kv import Put, Request
from keys.value import encode
from metasrv.check.check_backup import STORE_RULES
from metasrv.check.check_input import read_facts
from metasrv.check.rule import violations_of
from metasrv.leadership.log import compaction, log_policy
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.leadership.log.log_pins import procedure_pins
from metasrv.leadership.snapshot_requests import SnapshotRequest
from procedures.context import Live
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.runner import StoredRecord
from procedures.kinds.registry import KINDS
from tests.keys.catalog.snapshots import plain
from tests.keys.model.samples import RECORD
from tests.metasrv.api.rig import DEADLINE_MS, Server, leader


def compacting(one: Server) -> LogCompaction:
    return LogCompaction(one.term, one.kv, one.state.follower, one.clock)


def updates(one: Server) -> list[int]:
    start = CatalogUpdateKey.under().start
    keys = [item.key for item in one.kv.dump() if item.key.startswith(start)]
    return [CatalogUpdateKey.parse(key).version for key in keys]


async def put(one: Server, key: Any, value: Any) -> None:
    write = Put(bytes(key), encode(value))
    await one.kv.txn(Request(writes=(write,)), deadline_ms=DEADLINE_MS)


async def is_sound(one: Server) -> None:
    """A server that starts now has the catalog of this one, and `check` finds nothing."""
    other = Follower(one.kv, one.clock, deadline_ms=DEADLINE_MS)
    await other.log.load()
    assert plain(other.catalog) == plain(one.state.follower.catalog)
    facts = read_facts(one.kv.dump(), one.kv.revision)
    log_rules = [rule for rule in STORE_RULES if rule.id.startswith(("log-", "snapshot-", "id-"))]
    assert [str(fault) for fault in violations_of(log_rules, facts)] == []


@pytest.mark.case("catalog 124")
async def test_given_a_short_log_when_compacted_then_nothing_is_written() -> None:
    async with leader(nodes=1) as one:
        await one.make("a")
        before = one.kv.revision

        assert not (await compacting(one).compact()).made
        assert one.kv.revision == before


async def test_given_a_log_as_large_as_its_snapshot_then_another_is_made_and_history_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_policy, "LOG_BYTES_MIN", 1)
    async with leader(nodes=1) as one:
        await one.make("a")
        task = compacting(one)
        first = await task.compact()
        again = await task.compact()
        for number in range(4):
            await one.make(f"t{number}")
        second = await task.compact()

        assert (first.made, again.made, second.made) == (True, False, True)
        assert second.version == one.version > first.version
        assert second.floor == 0, "all of it is younger than the history that is kept"
        assert updates(one) == list(range(1, one.version + 1))
        await is_sound(one)


async def test_given_a_request_to_drop_history_then_the_log_begins_at_the_snapshot() -> None:
    async with leader(nodes=1) as one:
        for number in range(3):
            await one.make(f"t{number}")
        version = one.version
        done = await compacting(one).compact(SnapshotRequest(drops_history=True))
        await one.make("later")

        assert (done.version, done.made, done.floor) == (version, True, version)
        assert done.deleted == version
        assert updates(one) == list(range(version + 1, one.version + 1))
        await is_sound(one)


async def test_given_a_pin_when_history_is_dropped_then_it_stays_until_the_pin_expires() -> None:
    async with leader(nodes=1) as one:
        task, drop = compacting(one), SnapshotRequest(drops_history=True)
        await one.make("a")
        await task.compact(SnapshotRequest(drops_history=False))
        pinned = one.version
        now_ms = one.clock.wall_ms()
        pin = CatalogPin(
            name="p",
            version=pinned,
            reason="r",
            by="anna",
            since_ms=1,
            expires_at_ms=now_ms + 60_000,
        )
        await put(one, CatalogPinKey("p"), pin)
        await one.make("b")

        held = await task.compact(drop)
        assert held.floor == pinned
        assert updates(one) == list(range(pinned + 1, one.version + 1))
        one.clock.ahead_ms += 61_000
        free = await task.compact(drop)

        assert free.floor == one.version
        assert updates(one) == []
        assert bytes(CatalogPinKey("p")) not in [item.key for item in one.kv.dump()]
        parts = [i.key for i in one.kv.dump() if i.key.startswith(b"__catalog/snapshot/0")]
        assert {SnapshotPartKey.parse(key).version for key in parts} == {one.version}
        await is_sound(one)


@pytest.mark.case("catalog 119")
async def test_given_a_holder_when_history_is_dropped_then_it_stays_from_its_version_on() -> None:
    async with leader(nodes=1) as one:
        task = compacting(one)
        await one.make("a")
        await task.compact(SnapshotRequest(drops_history=False))
        version = one.version
        holder = HolderRecord(
            holder_id="fe-1", incarnation="i", address="a", version="v", registered_at_ms=7
        )
        one.term.holders.book.registered(holder, version, (), one.clock.mono_ms())
        await one.make("b")

        assert (await task.compact(SnapshotRequest(drops_history=True))).floor == version
        one.term.holders.book.found(holder.model_copy(update={"holder_id": "fe-2"}))
        await one.make("c")
        assert (await task.compact(SnapshotRequest(drops_history=True))).floor == version


def procedure(**record: Any) -> ActiveProcedure:
    held = StoredRecord("p", RECORD.model_copy(update=record), 1)
    return ActiveProcedure(held, Live(), KINDS["create_table"])


@pytest.mark.case("catalog 123")
def test_given_a_procedure_then_it_pins_what_it_made_only_while_it_runs() -> None:
    running = procedure(catalog_version=17, paused_at_ms=None, poisoned=False, transitions=())
    fresh = procedure(catalog_version=None, paused_at_ms=None, poisoned=False, transitions=())
    paused = procedure(catalog_version=17, paused_at_ms=5, poisoned=False, transitions=())
    poisoned = procedure(catalog_version=17, paused_at_ms=None, poisoned=True, transitions=())
    parked = procedure(catalog_version=17, paused_at_ms=None, poisoned=False, transitions=())
    parked.parked = "its record is of tomorrow"

    pins = [list(procedure_pins([each])) for each in (running, fresh, paused, poisoned, parked)]

    assert [[pin.version for pin in each] for each in pins] == [[16], [], [], [], []]


async def test_given_revisions_of_long_ago_then_etcd_is_told_to_forget_those_alone() -> None:
    async with leader(nodes=1) as one:
        task = compacting(one)
        await task.compact_store()
        first = one.kv.revision
        await one.make("a")
        await task.compact_store()
        assert one.kv._store.compacted == 0

        one.clock.ahead_ms += compaction.STORE_HISTORY_MS
        await task.compact_store()

        assert one.kv._store.compacted == first


@pytest.mark.case("catalog 134")
async def test_given_parts_that_a_dead_leader_left_when_a_term_begins_then_they_are_deleted() -> (
    None
):
    async with leader(nodes=1) as one:
        left = bytes(SnapshotPartKey(3, 0))
        await one.kv.txn(Request(writes=(Put(left, b"{}"),)), deadline_ms=DEADLINE_MS)
        task = compacting(one)

        first, second = await task.compact(), await task.compact()

        assert (first.deleted, second.deleted) == (1, 0)
        assert left not in [item.key for item in one.kv.dump()]
        assert not task._has_work(), "an idle leader reads nothing for this"
