"""One server's catalog moves by the log alone, whatever becomes of the watch."""

import gc
from collections import Counter
from collections.abc import AsyncGenerator

import pytest

from keys.catalog.follower import Follower
from keys.catalog.log.update_log import APPLIED_AT_ONCE, UpdateLog
from keys.model.catalogs import SchemaInfo
from keys.model.log import (
    CatalogUpdate,
    CatalogUpdateKey,
    CatalogVersion,
    CatalogVersionKey,
    SchemaCreated,
)
from keys.store.kv import Get, KeyPage, Put, Request, TxnAnswer, Watched
from keys.store.memory import MemoryKv
from keys.value import encode
from metasrv_base.errors import Corrupt, Refused, Unavailable
from tests.keys.catalog.logs import DEADLINE_MS, World, check, first_update, update
from tests.sim.loop import SimClock, SimLoop, SimStalledError, run


class CountingKv(MemoryKv):
    """Counts what it is asked; `away`: it does not answer; `refuses`: it knows us no more."""

    def __init__(self, clock: SimClock) -> None:
        super().__init__(clock)
        self.reads = 0
        self.away = False
        self.refuses = False

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        self.reads += 1
        if self.away:
            raise Unavailable()
        if self.refuses:
            raise Refused("unauthenticated", details="permission denied")
        return await super().range(get, deadline_ms=deadline_ms, revision=revision)


class WatchedKv(MemoryKv):
    """Counts the watches that were begun, and those that have ended."""

    begun = ended = 0

    async def watch(
        self, key: bytes, end: bytes, *, start_revision: int
    ) -> AsyncGenerator[Watched, None]:
        self.begun += 1
        try:
            async for seen in super().watch(key, end, start_revision=start_revision):
                yield seen
        finally:
            self.ended += 1


async def publish(kv: MemoryKv, *updates: CatalogUpdate, declared: int | None = None) -> TxnAnswer:
    last = updates[-1].version if declared is None else declared
    writes = [Put(bytes(CatalogUpdateKey(one.version)), encode(one)) for one in updates]
    stored = CatalogVersion(version=last, at_ms=last)
    version = Put(bytes(CatalogVersionKey()), encode(stored))
    return await kv.txn(Request(writes=(*writes, version)), deadline_ms=DEADLINE_MS)


def schema_named(number: int) -> SchemaInfo:
    return SchemaInfo(schema_id=number, catalog="main", name=f"s{number}", created_at_ms=0)


async def following(loop: SimLoop) -> tuple[CountingKv, Follower]:
    kv = CountingKv(SimClock(loop))
    await publish(kv, first_update())
    follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
    loop.spawn("server", follower.log.follow())
    await follower.wait_for(1, deadline_ms=DEADLINE_MS)
    return kv, follower


def test_given_updates_when_watched_then_each_version_is_applied_and_nothing_is_read() -> None:
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        world, reads = World(3), kv.reads

        for version in range(2, 60):
            answer = await publish(kv, update(version, world.entry()))
            catalog = await follower.wait_for(version, deadline_ms=DEADLINE_MS)
            assert (catalog.version, catalog.revision) == (version, answer.revision)

        check(follower.catalog, world)
        assert kv.reads == reads
        kept = follower.at(7)
        assert kept is not None
        assert kept.version == 7

    run(main, 1)


def test_given_several_updates_in_one_revision_then_all_are_applied() -> None:
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        world = World(4)

        await publish(kv, *(update(version, world.entry()) for version in (2, 3, 4)))

        check(await follower.wait_for(4, deadline_ms=DEADLINE_MS), world)

    run(main, 1)


def test_given_an_update_that_was_offered_first_then_the_watch_repeats_it_and_it_is_ignored() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        new = update(2, World(5).entry())
        follower.log.offer(new, 9)
        before = follower.catalog

        await publish(kv, new)
        await SimClock(loop).sleep_ms(10)

        assert follower.catalog is before

    run(main, 1)


@pytest.mark.parametrize(("version", "declared"), [(3, 3), (2, 3)])
def test_given_a_log_with_a_gap_or_another_version_when_followed_then_corrupt(
    version: int, declared: int
) -> None:
    async def main(loop: SimLoop) -> None:
        kv = CountingKv(SimClock(loop))
        await publish(kv, first_update())
        follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
        task = loop.spawn("server", follower.log.follow())
        await follower.wait_for(1, deadline_ms=DEADLINE_MS)

        await publish(kv, update(version), declared=declared)
        await SimClock(loop).sleep_ms(10)

        assert isinstance(task.exception(), Corrupt)
        assert follower.catalog.version == 1

    run(main, 1)


def test_given_a_history_that_was_compacted_or_a_silent_store_then_it_loads_what_is_missing() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        clock, world = SimClock(loop), World(6)
        kv = CountingKv(clock)
        await publish(kv, first_update())
        follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
        kv.away = True
        loop.spawn("server", follower.log.follow())
        await clock.sleep_ms(1_000)
        with pytest.raises(Unavailable):
            await follower.wait_for(1, deadline_ms=100)

        loop.pause("server", 3_000)
        kv.away = False
        for version in range(2, 9):
            answer = await publish(kv, update(version, world.entry()))
        await kv.compact(answer.revision, deadline_ms=DEADLINE_MS)

        check(await follower.wait_for(8, deadline_ms=5_000), world)

    run(main, 1)


@pytest.mark.case("online 6")
def test_given_a_watch_that_was_compacted_under_us_then_versions_go_on_and_never_back() -> None:
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        world, seen = World(7), [follower.catalog.version]
        loop.pause("server", 500)
        for version in range(2, 12):
            answer = await publish(kv, update(version, world.entry()))
        await kv.compact(answer.revision, deadline_ms=DEADLINE_MS)
        while follower.catalog.version < 11:
            seen.append((await follower.changed(follower.catalog.version)).version)

        assert seen == sorted(seen)
        check(follower.catalog, world)

    run(main, 1)


def test_given_a_follower_that_listens_then_it_says_since_when_it_is_not_older_than_the_store() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        clock = SimClock(loop)
        loop.spawn("server", follower.log.listen())
        await clock.sleep_ms(5_000)
        heard = follower.log.heard_at_ms
        kv.away = True
        await clock.sleep_ms(5_000)

        assert heard is not None
        assert heard >= 4_000
        assert follower.log.heard_at_ms is not None
        assert follower.log.heard_at_ms <= 5_000

    run(main, 1)


LOAD = UpdateLog.load


async def loads_once(self: UpdateLog) -> int:
    """Does not load again what was compacted under a watch: goes on from the newest revision."""
    if not self.loaded.is_set():
        return await LOAD(self)
    page = await self._kv.range(Get(bytes(CatalogVersionKey())), deadline_ms=DEADLINE_MS)
    return page.revision


def test_given_no_load_behind_a_compaction_when_watched_then_it_never_gets_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(UpdateLog, "load", loads_once)

    with pytest.raises(SimStalledError):
        test_given_a_watch_that_was_compacted_under_us_then_versions_go_on_and_never_back()


def test_given_a_store_that_refuses_for_a_moment_when_followed_then_it_is_asked_again() -> None:
    async def main(loop: SimLoop) -> None:
        clock = SimClock(loop)
        kv = CountingKv(clock)
        await publish(kv, first_update())
        follower = Follower(kv, clock, deadline_ms=DEADLINE_MS)
        kv.refuses = True
        following = loop.spawn("server", follower.log.follow())
        listening = loop.spawn("server", follower.log.listen())
        await clock.sleep_ms(60_000)
        assert not following.done()
        assert not listening.done()

        kv.refuses = False

        await follower.wait_for(1, deadline_ms=DEADLINE_MS)

    run(main, 1)


@pytest.mark.parametrize(("versions", "is_set_aside"), [(4_000, True), (40, False)])
@pytest.mark.slow
def test_given_a_load_when_it_is_over_then_no_collection_looks_through_a_large_one(
    versions: int, is_set_aside: bool
) -> None:
    async def main(loop: SimLoop) -> None:
        kv = MemoryKv(SimClock(loop))
        await publish(kv, first_update())
        for version in range(2, versions):
            await publish(kv, update(version, SchemaCreated(info=schema_named(version))))
        follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
        gc.collect()
        before = len(gc.get_objects())

        await follower.log.load()

        stays = len(gc.get_objects()) - before
        assert follower.catalog.version == versions - 1
        assert (stays < 0) == is_set_aside, "what is set aside is in no generation"

    try:
        run(main, 1)
    finally:
        gc.unfreeze()


def test_given_a_long_log_when_loaded_then_others_have_turns_between_its_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(loop: SimLoop) -> None:
        kv, applied = MemoryKv(SimClock(loop)), Counter[int]()
        await publish(kv, first_update())
        for version in range(2, 1_000):
            await publish(kv, update(version, SchemaCreated(info=schema_named(version))))
        follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
        offer = follower.log.offer

        def offered(one: CatalogUpdate, revision: int) -> None:
            applied[loop.steps] += 1
            offer(one, revision)

        monkeypatch.setattr(follower.log, "offer", offered)

        await follower.log.load()

        assert follower.catalog.version == applied.total() == 999
        assert max(applied.values()) <= APPLIED_AT_ONCE

    run(main, 1)


@pytest.mark.case("catalog 118")
def test_given_an_entry_that_nobody_knows_when_followed_then_it_stops_and_skips_nothing() -> None:
    async def main(loop: SimLoop) -> None:
        kv = CountingKv(SimClock(loop))
        await publish(kv, first_update())
        follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
        task = loop.spawn("server", follower.log.follow())
        await follower.wait_for(1, deadline_ms=DEADLINE_MS)
        known = update(2, SchemaCreated(info=schema_named(2)))
        unknown = encode(known).replace(b"schema.created", b"schema.of_tomorrow")

        await kv.txn(
            Request(writes=(Put(bytes(CatalogUpdateKey(2)), unknown),)), deadline_ms=DEADLINE_MS
        )
        await publish(kv, update(3, SchemaCreated(info=schema_named(3))))
        await SimClock(loop).sleep_ms(10)

        assert isinstance(task.exception(), Corrupt)
        assert follower.catalog.version == 1

    run(main, 1)


@pytest.mark.case("catalog 136")
def test_given_readers_of_other_keys_that_take_nothing_then_the_catalog_is_not_delayed() -> None:
    async def main(loop: SimLoop) -> None:
        kv, follower = await following(loop)
        other = kv.watch(b"__other/", b"__other0", start_revision=1)
        writes = tuple(Put(b"__other/%d" % number, b"x") for number in range(50))
        await kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)

        await publish(kv, update(2, SchemaCreated(info=schema_named(2))))
        catalog = await follower.wait_for(2, deadline_ms=DEADLINE_MS)
        with pytest.raises(Unavailable, match="stale"):  # the catalog's own keys are waited for
            await follower.wait_for(3, deadline_ms=10)

        assert catalog.version == 2
        assert len((await anext(other)).events) == 50

    run(main, 1)


@pytest.mark.case("catalog 11")
def test_given_a_server_that_starts_and_ends_then_its_log_is_followed_once_and_let_go_once() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        kv = WatchedKv(SimClock(loop))
        await publish(kv, first_update())
        follower = Follower(kv, SimClock(loop), deadline_ms=DEADLINE_MS)
        task = loop.spawn("server", follower.log.follow())
        for version in range(2, 6):
            await publish(kv, update(version, SchemaCreated(info=schema_named(version))))
            await follower.wait_for(version, deadline_ms=DEADLINE_MS)
        meanwhile = (kv.begun, kv.ended)

        task.cancel()
        await SimClock(loop).sleep_ms(10)

        assert meanwhile == (1, 0)
        assert (kv.begun, kv.ended) == (1, 1)

    run(main, 1)
