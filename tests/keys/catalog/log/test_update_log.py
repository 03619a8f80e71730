"""The four calls of the log, and what counts when."""

import asyncio
from collections.abc import Awaitable

import pytest

from keys.catalog.follower import Follower
from keys.catalog.log.handlers import (
    DONE,
    SLOW_MS,
    LogEvent,
    RunningHandler,
    SnapshotEntry,
)
from keys.catalog.log.update_log import UpdateLog, VersionedUpdate
from keys.commit.change import change
from keys.commit.committer import StaleRead
from keys.commit.txn import Read, Snapshot, Txn
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.log import CatalogUpdate, CatalogUpdateKey, SchemaCreated
from keys.model.snapshot.pins import CatalogPinKey
from keys.store.memory import MemoryKv
from metasrv_base.errors import Corrupt, NotLeader, Unavailable
from tests.keys.catalog.logs import first_update, update
from tests.keys.catalog.snapshots import Cluster, Term, scenario
from tests.keys.commit.leading_committer import DEADLINE_MS
from tests.sim.loop import SimClock, SimLoop, run


class Gate:
    """A handler that ends when it is let, and notes what it was given."""

    def __init__(self) -> None:
        self.given: list[tuple[str, int, int, int]] = []
        self.ended: list[int] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, event: LogEvent, at_ms: int, revision: int) -> None:
        kind = "snapshot" if isinstance(event, SnapshotEntry) else "update"
        self.given.append((kind, event.version, at_ms, revision))
        await self.open.wait()
        self.ended.append(event.version)


def schema(name: str, version: int, *, seen: int = 0) -> VersionedUpdate:
    """The change that makes schema *name*, which was seen at revision *seen*."""
    info = SchemaInfo(schema_id=100 + version, catalog="main", name=name, created_at_ms=1)
    read = Snapshot(0, {bytes(SchemaNameKey("main", name)): Read(None, seen)})
    return VersionedUpdate(version, change(read, SchemaCreated(info=info)))


def with_gate(cluster: Cluster) -> tuple[Follower, Gate]:
    follower, gate = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS), Gate()
    follower.log.register_update_handler("gate", gate)
    return follower, gate


async def led_with_gate(cluster: Cluster) -> tuple[Term, Gate]:
    """A term whose follower has a gate too, and follows."""
    term = await cluster.lead()
    follower, gate = with_gate(cluster)
    cluster.loop.spawn("server", follower.log.follow())
    await follower.log.loaded.wait()
    follower.log.lead(term.committer)
    term.follower = follower
    return term, gate


@pytest.mark.case("catalog 22", "catalog 23")
def test_given_versions_in_any_order_when_appended_then_the_next_one_alone_is_true() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        log, made = term.follower.log, []
        for name, version in (("a", 2), ("b", 2), ("b", 1), ("b", 4), ("b", 3), ("c", 4)):
            made.append((version, await log.append(schema(name, version))))

        assert made == [(2, True), (2, False), (1, False), (4, False), (3, True), (4, True)]
        assert log.version == term.follower.catalog.version == 4
        assert {"a", "b", "c"} <= {name for _, name in term.follower.catalog.schemas}
        assert cluster.keys(CatalogUpdateKey.under().start)[-1] == str(CatalogUpdateKey(4))

    scenario(main)


@pytest.mark.case("catalog 24", "catalog 33")
def test_given_two_writers_of_one_version_then_one_is_true_and_handlers_hear_of_that_alone() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        term, gate = await led_with_gate(cluster)
        gate.given.clear()
        log, revision = term.follower.log, cluster.store.revision

        rivals = (log.append(schema("a", 2)), log.append(schema("b", 2)))
        won = list(await asyncio.gather(*rivals))
        with pytest.raises(StaleRead):  # the loser is judged again: the name exists by now
            await log.append(schema("a", 3))
        await log.append(schema("b", 3))

        assert won == [True, False]
        assert [version for _, version, _, _ in gate.given] == [2, 3]
        assert cluster.store.revision == revision + 2, "what is refused writes nothing"

    scenario(main)


def test_given_appends_of_the_next_versions_at_once_then_they_may_share_a_transaction() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        log, revision = term.follower.log, cluster.store.revision

        made = await asyncio.gather(*(log.append(schema(f"s{v}", v)) for v in range(2, 12)))

        assert all(made)
        assert log.version == 11
        assert cluster.store.revision < revision + 10

    scenario(main)


@pytest.mark.case("catalog 25", "catalog 30")
def test_given_updates_when_started_then_handlers_have_them_in_order_with_time_and_revision() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(5)
        versions = dict(cluster.versions)
        follower, gate = with_gate(cluster)

        await follower.log.start()

        assert follower.catalog.version == follower.log.version == 6
        assert [version for _, version, _, _ in gate.given] == [1, 2, 3, 4, 5, 6]
        assert gate.given[1:] == [
            ("update", version, versions[version].at_ms, versions[version].revision)
            for version in range(2, 7)
        ]
        with pytest.raises(AssertionError, match="once"):
            await follower.log.start()

    scenario(main)


@pytest.mark.case("catalog 26")
def test_given_a_snapshot_and_updates_when_started_then_one_snapshot_and_those_and_no_more() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(5)
        entry = SnapshotEntry(term.follower.catalog)
        assert await term.follower.log.save_snapshot(entry, log_bytes=1, now_ms=1)
        await term.change(2)
        follower, gate = with_gate(cluster)

        await follower.log.start()

        given = [(kind, version) for kind, version, _, _ in gate.given]
        assert given == [("snapshot", 6), ("update", 7), ("update", 8)]
        assert gate.given[0][2:] == (entry.catalog.at_ms, entry.catalog.revision)

    scenario(main)


@pytest.mark.case("catalog 27")
def test_given_a_snapshot_when_one_that_is_not_newer_is_saved_then_false() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(3)
        old = SnapshotEntry(term.follower.catalog)
        await term.change(3)
        new, log = SnapshotEntry(term.follower.catalog), term.follower.log

        saved = [await log.save_snapshot(each, log_bytes=1, now_ms=1) for each in (new, new, old)]

        assert saved == [True, False, False]

    scenario(main)


@pytest.mark.case("catalog 28")
def test_given_no_handler_or_one_that_comes_late_when_started_then_an_error() -> None:
    async def main(loop: SimLoop) -> None:
        clock, gate = SimClock(loop), Gate()
        bare = UpdateLog(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
        with pytest.raises(AssertionError, match="without a handler"):
            await bare.start()
        with pytest.raises(NotLeader):
            await bare.append(VersionedUpdate(1, Txn()))

        started = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
        with pytest.raises(AssertionError, match="registered"):
            started.log.register_update_handler("catalog", gate)
        await started.log.start()
        with pytest.raises(AssertionError, match="before the log starts"):
            started.log.register_update_handler("gate", gate)

    run(main, 1)


@pytest.mark.case("catalog 29")
def test_given_a_handler_that_waits_then_its_version_counts_and_is_answered_when_it_ends() -> None:
    async def main(cluster: Cluster) -> None:
        term, gate = await led_with_gate(cluster)
        gate.open.clear()
        log, clock, revision = term.follower.log, cluster.store.clock, cluster.store.revision

        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(log.append(schema("a", 2)))
            await clock.sleep_ms(50)
            second = tasks.create_task(log.append(schema("b", 3)))
            closing = tasks.create_task(term.committer.close(clock.wall_ms() + 5))
            await clock.sleep_ms(50)
            assert cluster.store.revision >= revision + 2, "the committer waits for no handler"
            assert not any(task.done() for task in (first, second, closing))
            assert (log.version, term.follower.catalog.version) == (1, 1)
            assert term.follower.at(2) is None
            assert log.closed_ms < clock.wall_ms()
            with pytest.raises(Unavailable, match="stale"):
                await term.follower.wait_for(2, deadline_ms=10)
            gate.open.set()

        assert gate.ended[-2:] == [2, 3]
        assert (log.version, term.follower.catalog.version) == (3, 3)

    scenario(main)


def test_given_a_change_that_is_no_metadata_then_no_handler_holds_its_answer_back() -> None:
    async def main(cluster: Cluster) -> None:
        term, gate = await led_with_gate(cluster)
        gate.open.clear()
        key = CatalogPinKey("note")
        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(term.follower.log.append(schema("a", 2)))
            note = Txn().expecting(key, 0).put_stored(key, b"{}")

            await asyncio.wait_for(term.committer.commit(note), 1)

            assert not waits.done()
            gate.open.set()

    scenario(main)


@pytest.mark.parametrize("wanted", ["commit", "wait for a version"])
def test_given_a_handler_that_commits_or_waits_then_it_is_an_error_of_the_program(
    wanted: str,
) -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        follower = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS)

        async def handle(event: LogEvent, at_ms: int, revision: int) -> None:
            if wanted == "commit":
                await term.committer.commit(schema("b", 9).txn)
            await follower.wait_for(99, deadline_ms=10)

        follower.log.register_update_handler("bad", handle)
        with pytest.raises(AssertionError, match=f"'bad' must not {wanted}"):
            await follower.log.start()
        assert follower.catalog.version == 0, "what its handler failed does not count"

    scenario(main)


def test_given_a_handler_of_over_a_second_then_it_is_named_once_while_it_runs() -> None:
    async def main(cluster: Cluster) -> None:
        named: list[RunningHandler] = []
        term, gate = await led_with_gate(cluster)
        log, clock = term.follower.log, cluster.store.clock
        log.on_slow(named.append)
        await log.append(schema("a", 2))
        gate.open.clear()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(log.append(schema("b", 3)))
            await clock.sleep_ms(SLOW_MS - 100)
            assert not named
            await clock.sleep_ms(5 * SLOW_MS)

            assert [(each.name, each.version) for each in named] == [("gate", 3)]
            assert log.running == named[0]
            gate.open.set()
        assert log.running is None

    scenario(main)


def test_given_a_handler_that_fails_then_the_server_is_told_and_nothing_counts_any_more() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        follower = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS)

        async def handle(event: LogEvent, at_ms: int, revision: int) -> None:
            if event.version == 3:
                raise Corrupt(handler="of this test")

        follower.log.register_update_handler("fails", handle)
        task = cluster.loop.spawn("server", follower.log.follow())
        await follower.wait_for(1, deadline_ms=DEADLINE_MS)
        await term.change(4)
        await cluster.store.clock.sleep_ms(100)

        assert isinstance(task.exception(), Corrupt)
        assert follower.catalog.version == 2

    scenario(main)


@pytest.mark.case("catalog 26")
def test_given_a_compaction_under_a_follower_then_handlers_get_one_snapshot_and_what_follows() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        follower, gate = with_gate(cluster)
        cluster.loop.spawn("server", follower.log.follow())
        await follower.wait_for(1, deadline_ms=DEADLINE_MS)
        cluster.loop.pause("server", 3_000)
        for _ in range(2):
            await term.change(5)
            await term.save()
        await term.writer.raise_floor(term.follower.catalog.version)
        await term.writer.collect()
        await cluster.store.compact(cluster.store.revision, deadline_ms=DEADLINE_MS)
        await term.change(2)

        await follower.wait_for(13, deadline_ms=10_000)

        given = [(kind, version) for kind, version, _, _ in gate.given]
        assert given == [("update", 1), ("snapshot", 11), ("update", 12), ("update", 13)]
        assert gate.ended == [1, 11, 12, 13]

    scenario(main)


def test_given_more_updates_than_handlers_may_be_behind_then_the_rest_is_read_later() -> None:
    async def main(loop: SimLoop) -> None:
        clock, gate = SimClock(loop), Gate()
        follower = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
        follower.log.register_update_handler("gate", gate)
        follower.log.offer(first_update(), 1)
        waits = [
            follower.log.offer(update(version, SchemaCreated(info=_info(version))), version)
            for version in range(2, 50)
        ]
        assert follower.catalog.version == 0

        await follower.log._settle(10)

        assert all(wait is not None and wait.done() for wait in waits)
        assert gate.ended == list(range(1, 50))

    run(main, 1)


def test_given_handlers_that_are_done_at_once_then_an_update_takes_no_turn_of_the_loop() -> None:
    async def main(loop: SimLoop) -> None:
        clock, told = SimClock(loop), list[int]()

        def handle(event: LogEvent, at_ms: int, revision: int) -> Awaitable[None]:
            told.append(event.version)
            return DONE

        follower = Follower(MemoryKv(clock), clock, deadline_ms=DEADLINE_MS)
        follower.log.register_update_handler("prompt", handle)
        steps = loop.steps
        updates: list[CatalogUpdate] = [first_update()]
        updates += [update(v, SchemaCreated(info=_info(v))) for v in range(2, 100)]

        waits = [follower.log.offer(each, each.version) for each in updates]

        assert loop.steps == steps
        assert set(waits) == {None}
        assert told == list(range(1, 100))
        assert follower.catalog.version == 99

    run(main, 1)


def _info(number: int) -> SchemaInfo:
    return SchemaInfo(schema_id=number, catalog="main", name=f"s{number}", created_at_ms=0)
