"""A version of many entries is applied in turns: readers have the version before until the last."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.log.handlers import LogEvent
from keys.commit.committer import StaleRead
from keys.commit.txn import Copies, LargeChange, Txn
from keys.model.log import TablePurged
from keys.model.staging.parts import BatchPartKey
from keys.store.kv import Get, KeyPage
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import update
from tests.keys.catalog.snapshots import Cluster, Past, Term, plain, scenario
from tests.keys.commit.large_changes import BY, SMALL, large, schema_of_tables
from tests.keys.commit.leading_committer import DEADLINE_MS, Store

TABLES = 12
WAIT_MS = 20 * DEADLINE_MS


async def led(at: Cluster, entries_at_once: int) -> tuple[Term, "asyncio.Task[None]"]:
    """A term whose follower applies so many entries in a turn, and the task in which it follows."""
    term = await at.lead()
    follower = Follower(
        at.store, at.store.clock, deadline_ms=DEADLINE_MS, entries_at_once=entries_at_once
    )
    following = at.loop.spawn("server", follower.log.follow())
    await follower.log.loaded.wait()
    follower.log.lead(term.committer)
    term.follower, term.committer.sizes = follower, SMALL
    return term, following


def many(term: Term, number: int, tables: int = TABLES) -> Txn:
    """A schema of tables."""
    return large(term.follower, *schema_of_tables(f"big{number}", 2_000 + 100 * number, tables))


@dataclass
class Reader:
    """Looks at the catalog in every turn of the loop that it gets."""

    follower: Follower
    seen: dict[int, list[Catalog]] = field(default_factory=dict)
    between: int = 0
    """Looks while handlers had a newer version."""
    is_done: bool = False

    async def run(self) -> None:
        follower = self.follower
        while not self.is_done:
            catalog = follower.catalog
            self.seen.setdefault(catalog.version, []).append(catalog)
            self.between += follower.log.taken > catalog.version
            assert follower.log.version == catalog.version
            assert follower.at(catalog.version) is catalog
            assert follower.at(catalog.version + 1) is None
            assert follower.update(catalog.version + 1) is None
            await asyncio.sleep(0)


@given(
    at_once=st.integers(1, TABLES + 2),
    changes=st.lists(st.sampled_from(["many", "one"]), min_size=1, max_size=4),
)
@pytest.mark.slow
def test_given_a_reader_between_turns_then_it_has_whole_versions_alone_and_each_commit_its_own(
    at_once: int, changes: list[str]
) -> None:
    async def main(at: Cluster) -> None:
        plainly, wanted = await at.lead(), dict[int, dict[str, object]]()
        term, _ = await led(at, at_once)
        term.committer.on_update(plainly.follower.log.offer)
        reader = Reader(term.follower)

        async def change() -> None:
            for number, what in enumerate(changes):
                if what == "many":
                    await term.committer.commit(many(term, number), procedure=BY)
                else:
                    await term.change()
                assert term.follower.catalog.version == 2 + number, "answered before it counts"
                wanted[2 + number] = plain(plainly.follower.catalog)
            reader.is_done = True

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reader.run())
            tasks.create_task(change())

        for version, catalogs in reader.seen.items():
            assert len({id(catalog) for catalog in catalogs}) == 1
            assert version == 1 or plain(catalogs[0]) == wanted[version]
        takes_turns = "many" in changes and at_once <= TABLES
        assert takes_turns or not reader.between
        assert reader.between or not takes_turns or at_once > 1

    scenario(main)


def test_given_events_behind_one_in_turns_then_they_wait_and_count_in_order() -> None:
    async def main(at: Cluster) -> None:
        term, _ = await led(at, 1)
        counted = list[int]()

        async def note() -> None:
            while len(counted) < 4:
                counted.append((await term.follower.changed(len(counted) + 1)).version)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(note())
            for number in range(4):
                await asyncio.sleep(0)
                tasks.create_task(term.committer.commit(many(term, number), procedure=BY))

        assert counted == [2, 3, 4, 5]
        assert len(term.follower.catalog.tables) == 4 * TABLES

    scenario(main)


def test_given_a_large_change_behind_one_that_does_not_count_yet_then_it_is_planned_once() -> None:
    async def main(at: Cluster) -> None:
        term, _ = await led(at, 1)
        planned = list[bool]()

        def noted(txn: Txn) -> Txn:
            assert txn.large is not None
            made = txn.large.copies

            async def copies(version: int | None) -> Copies | None:
                found = await made(version)
                planned.append(found is not None)
                return found

            return Txn(entries=txn.entries, large=LargeChange(copies))

        first, second = (noted(many(term, number)) for number in range(2))
        term.committer.sizes = type(SMALL)(part_bytes=1 << 20, chunk_ops=1_000)
        await asyncio.gather(
            term.committer.commit(first, procedure=BY), term.committer.commit(second, procedure=BY)
        )

        assert planned == [True, True]

    scenario(main)


def test_given_handlers_that_never_end_then_a_large_change_is_refused_and_others_go_on() -> None:
    async def main(at: Cluster) -> None:
        term, _ = await led(at, 1)
        follower = Follower(at.store, at.store.clock, deadline_ms=DEADLINE_MS)

        async def never(event: LogEvent, at_ms: int, revision: int) -> None:
            if event.version > 1:
                await asyncio.Event().wait()

        follower.log.register_update_handler("never", never)
        at.loop.spawn("stuck", follower.log.follow())
        await follower.log.loaded.wait()
        follower.log.lead(term.committer)
        async with asyncio.TaskGroup() as tasks:
            waits = tasks.create_task(term.change())
            await asyncio.sleep(0)
            txn = large(follower, *schema_of_tables("big", 2_000, TABLES))
            with pytest.raises(StaleRead):
                await term.committer.commit(txn, procedure=BY)
            await term.committer.close(1 << 40)

            assert not waits.done()
            waits.cancel()

    scenario(main)


@pytest.mark.parametrize("turns", range(1, TABLES, 3))
def test_given_a_follower_that_is_closed_in_the_middle_when_it_follows_again_then_it_goes_on(
    turns: int,
) -> None:
    async def main(at: Cluster) -> None:
        term, following = await led(at, 1)
        follower = term.follower
        commit = at.loop.spawn("client", term.committer.commit(many(term, 0), procedure=BY))
        left = turns
        while left:
            left -= follower.log.taken == 2
            await asyncio.sleep(0)
        before = follower.catalog
        following.cancel()
        await at.store.clock.sleep_ms(WAIT_MS)

        assert follower.catalog is before
        assert (before.version, follower.log.taken, follower.log.version) == (1, 2, 1)
        assert plain(before) == plain(at.versions[1])
        assert not commit.done(), "it does not count"

        at.loop.spawn("server", follower.log.follow())
        await follower.wait_for(2, deadline_ms=WAIT_MS)
        await commit
        await term.change()

        assert len(follower.catalog.tables) == TABLES
        other = Follower(at.store, at.store.clock, deadline_ms=DEADLINE_MS)
        await other.log.load()
        assert plain(other.catalog) == plain(follower.catalog)

    scenario(main)


def test_given_an_entry_that_cannot_follow_in_a_late_turn_then_the_version_never_counts() -> None:
    async def main(at: Cluster) -> None:
        await at.lead()
        follower = Follower(at.store, at.store.clock, deadline_ms=DEADLINE_MS, entries_at_once=2)
        following = at.loop.spawn("other", follower.log.follow())
        await follower.log.loaded.wait()
        entries = (*schema_of_tables("big", 2_000, TABLES), TablePurged(table_id=9))
        follower.log.offer(update(2, *entries), 9)
        with pytest.raises(Corrupt):
            await following

        assert follower.catalog.version == 1

    scenario(main)


class NotedReads(Past):
    """Notes the version that counts at each read of parts."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, store.revision)
        self.follower: Follower | None = None
        self.counted: list[int] = []

    async def range(
        self, get: Get, *, deadline_ms: int, revision: int = 0, serializable: bool = False
    ) -> KeyPage:
        start, end = BatchPartKey.under()
        if start <= get.key < end and self.follower is not None:
            self.counted.append(self.follower.log.version)
        return await super().range(get, deadline_ms=deadline_ms, revision=revision)


def test_given_a_log_of_versions_in_parts_when_loaded_then_one_of_them_is_held_at_a_time() -> None:
    async def main(at: Cluster) -> None:
        term, _ = await led(at, TABLES)
        for number in range(4):
            await term.committer.commit(many(term, number), procedure=BY)
        store = NotedReads(at.store)
        follower = Follower(store, at.store.clock, deadline_ms=DEADLINE_MS, entries_at_once=1)

        async def slow(event: LogEvent, at_ms: int, revision: int) -> None:
            await at.store.clock.sleep_ms(5)

        follower.log.register_update_handler("slow", slow)
        store.follower = follower
        await follower.log.start()

        assert store.counted == sorted(store.counted)
        assert set(store.counted) == {0, 2, 3, 4}, "the first version is in no parts"
        assert plain(follower.catalog) == plain(term.follower.catalog)

    scenario(main)
