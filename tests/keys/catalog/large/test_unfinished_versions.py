"""Versions too large for one transaction: whole for every reader, whoever dies in between."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from keys.catalog import old_log, rebuild
from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.old_log import MissingUpdate, OldLog
from keys.catalog.rebuild import Rebuild
from keys.commit.committer import StaleRead
from keys.commit.settled import SettledReads
from keys.commit.staged_parts import WholeItem
from keys.commit.txn import snapshot
from keys.model.log import CatalogUpdateKey
from keys.model.staging.parts import BatchPartKey, LargeUpdate, LargeUpdateKey
from keys.model.tables import TableInfoKey
from keys.store.kv import Delete, Request, TxnAnswer
from keys.value import decode
from metasrv_base.errors import Corrupt, MetaError, Unavailable, Unknown
from tests.keys.catalog.large.large_versions import (
    FIRST_ID,
    TABLES,
    calls_of,
    committed,
    faults,
    keys_of,
    loaded,
    written,
)
from tests.keys.catalog.snapshots import Cluster, loaded_at, plain, scenario
from tests.keys.commit.large_changes import BY, SMALL, large, schema_of_tables
from tests.keys.commit.leading_committer import (
    DEADLINE_MS,
    Store,
    count,
    lost_answer,
    lost_answer_and_deposed,
    lost_request,
    never_sent,
)

ITEM_BYTES = 1_500
"""More than an entry here has: the last one of a part may pass the part's size."""


def parts(at: Cluster) -> list[str]:
    return at.keys(BatchPartKey.under().start)


def test_given_a_large_change_when_committed_then_one_version_has_all_its_keys() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        before = term.follower.catalog.version
        await committed(term)

        catalog = term.follower.catalog
        assert catalog.version == before + 1
        assert len(catalog.tables) == TABLES
        assert keys_of(at.store) == written(catalog)
        assert plain(await loaded(at.store)) == plain(catalog)
        assert len(parts(at)) > 1
        assert faults(at.store) == []

    scenario(main)


def test_given_any_revision_of_a_large_change_when_a_server_starts_there_then_all_or_nothing() -> (
    None
):
    async def main(at: Cluster) -> None:
        term = await at.lead()
        before = term.follower.catalog
        start = at.store.revision
        await committed(term)

        for revision in range(start, at.store.revision + 1):
            catalog = await loaded_at(at.store, revision)
            whole = catalog.version > before.version
            assert plain(catalog) == plain(term.follower.catalog if whole else before)
            assert faults(at.store, revision) == [], f"at revision {revision}"

    scenario(main)


@pytest.mark.parametrize("fault", [lost_answer, lost_request, never_sent])
@pytest.mark.parametrize("at_call", range(12))
def test_given_a_fault_of_any_transaction_when_committed_then_all_keys_are_written_once(
    fault: object, at_call: int
) -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        calls = 0

        async def strike(store: Store, request: Request) -> TxnAnswer:
            nonlocal calls
            calls += 1
            if calls - 1 == at_call:
                answer: TxnAnswer = await fault(store, request)  # type: ignore[operator]
                return answer
            return await store.apply(request)

        at.store.faults = [strike] * 40
        try:
            await committed(term)
        except Unavailable:  # nothing was sent: a step would be run again
            await committed(term)
        assert keys_of(at.store) == written(term.follower.catalog)
        assert len(term.follower.catalog.tables) == TABLES
        assert faults(at.store) == []

    scenario(main)


CALLS = calls_of(committed)


@pytest.mark.parametrize("at_call", range(CALLS))
def test_given_a_leader_that_is_deposed_anywhere_when_another_begins_then_it_finishes_the_keys(
    at_call: int,
) -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        before = term.follower.catalog.version
        calls = 0

        async def strike(store: Store, request: Request) -> TxnAnswer:
            nonlocal calls
            calls += 1
            if calls - 1 == at_call:
                return await lost_answer_and_deposed(store, request)
            return await store.apply(request)

        at.store.faults = [strike] * 40
        with pytest.raises(Unknown):
            await committed(term)
        at.store.faults = []
        other = await at.lead()
        await other.committer.commit(count("x", 1))

        catalog = other.follower.catalog
        assert len(catalog.tables) in (0, TABLES)
        assert (catalog.version > before) == bool(catalog.tables)
        assert keys_of(at.store) == written(catalog)
        assert faults(at.store) == []

    scenario(main)


def test_given_keys_that_are_being_written_when_read_by_the_leader_then_it_waits_for_all() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        reads = SettledReads(at.store, term.committer.settling)
        keys = [TableInfoKey(FIRST_ID + number) for number in range(TABLES)]
        seen = set[int]()

        async def look() -> None:
            while len(seen) < 2:
                found = await snapshot(reads, *keys, deadline_ms=DEADLINE_MS)
                seen.add(sum(found.get(key) is not None for key in keys))
                await at.store.clock.sleep_ms(1)

        async def slow(store: Store, request: Request) -> TxnAnswer:
            await store.clock.sleep_ms(7)
            return await store.apply(request)

        at.store.faults = [slow] * 40
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(look())
            tasks.create_task(committed(term))

        assert seen == {0, TABLES}

    scenario(main)


def test_given_a_change_in_between_when_its_turn_comes_then_it_is_planned_again() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        entries = schema_of_tables("big", FIRST_ID, TABLES)
        txn = large(term.follower, *entries)
        await term.change(3)
        await term.committer.commit(txn, procedure=BY)

        assert keys_of(at.store) == written(term.follower.catalog)

        async def never(version: int | None) -> None:
            return None

        assert txn.large is not None
        stale = type(txn)(entries=txn.entries, large=type(txn.large)(never))
        with pytest.raises(StaleRead):
            await term.committer.commit(stale, procedure=BY)
        await term.change()

    scenario(main)


def test_given_a_follower_that_watches_then_it_reads_the_entries_from_their_parts() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        other = Follower(at.store, at.store.clock, deadline_ms=DEADLINE_MS)
        at.loop.spawn("other", other.log.follow())
        await other.log.loaded.wait()
        await committed(term)
        await term.change()
        await other.wait_for(term.follower.catalog.version, deadline_ms=DEADLINE_MS)

        assert plain(other.catalog) == plain(term.follower.catalog)
        (ref,) = (
            decode(LargeUpdate, item.value, key="k").staged
            for item in at.store.dump()
            if item.key.startswith(LargeUpdateKey.under().start)
        )
        assert other.log.sizes.between(0, other.catalog.version) > ref.size_bytes

    scenario(main)


def test_given_an_old_update_when_read_then_it_has_the_entries_of_its_parts() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        await committed(term)
        await term.change(2)
        log = OldLog(at.store, DEADLINE_MS)
        catalog = Catalog()
        for version, wanted in sorted(at.versions.items()):
            catalog = (await log.window(catalog, version)).at(version)
            assert plain(catalog) == plain(wanted)

    scenario(main)


def test_given_old_updates_in_parts_when_folded_then_one_list_is_parsed_and_one_update_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed, taken = list[int](), list[int]()
    take = Rebuild.take

    def loads(text: bytes) -> Any:
        parsed.append(len(text))
        return orjson.loads(text)

    def counted(fold: Rebuild, updates: Iterable[WholeItem]) -> None:
        items = list(updates)
        taken.append(sum(bool(item.lists) for item in items))
        take(fold, items)

    async def main(at: Cluster) -> None:
        term = await at.lead()
        for number in range(3):
            await committed(term, f"big{number}", FIRST_ID + 100 * number)
        last = term.follower.catalog
        fold = Rebuild(Catalog(), last, last.version)

        found = await OldLog(at.store, DEADLINE_MS).rebuilt(fold, lambda: None)

        assert plain(found) == plain(last)
        assert found.schema_revisions == last.schema_revisions

    monkeypatch.setattr(rebuild, "orjson", SimpleNamespace(loads=loads, dumps=orjson.dumps))
    monkeypatch.setattr(old_log, "PART_BYTES", 1)
    monkeypatch.setattr(Rebuild, "take", counted)
    scenario(main)
    assert max(taken) == 1
    assert sum(taken) == 3
    assert len(parsed) > 3 * 3
    assert max(parsed) <= SMALL.part_bytes + ITEM_BYTES


def test_given_parts_that_a_log_entry_names_then_compaction_deletes_them_with_it() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        await committed(term)
        version = term.follower.catalog.version
        before_it = term.follower.at(version - 1)
        assert before_it is not None
        await term.change()
        before = parts(at)
        assert await term.save()
        await term.writer.collect()
        assert parts(at) == before, "the log has its update"

        assert await term.writer.raise_floor(version + 1)
        await term.writer.collect()

        assert parts(at) == at.keys(LargeUpdateKey.under().start) == []
        assert bytes(CatalogUpdateKey(version)) not in {item.key for item in at.store.dump()}
        assert plain(await loaded(at.store)) == plain(term.follower.catalog)
        with pytest.raises(MissingUpdate):
            await OldLog(at.store, DEADLINE_MS).window(before_it, version)

    scenario(main)


@pytest.mark.parametrize("after", range(6))
def test_given_a_compaction_that_dies_anywhere_then_servers_start_and_the_next_one_finishes(
    after: int,
) -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        await committed(term)
        await term.change()
        assert await term.save()
        await term.writer.raise_floor(term.follower.catalog.version)
        left = after

        async def strike(store: Store, request: Request) -> TxnAnswer:
            nonlocal left
            left -= 1
            if left < 0:
                return await lost_answer_and_deposed(store, request)
            return await store.apply(request)

        at.store.faults = [strike] * 40
        try:
            await term.writer.collect()
        except MetaError:
            at.store.faults = []
        assert plain(await loaded(at.store)) == plain(term.follower.catalog)
        at.store.faults = []
        other = await at.lead()
        await other.writer.collect()
        assert parts(at) == at.keys(LargeUpdateKey.under().start) == []
        assert faults(at.store) == []

    scenario(main)


def test_given_a_log_whose_parts_are_gone_then_it_is_corrupt_and_check_names_it() -> None:
    async def main(at: Cluster) -> None:
        term = await at.lead()
        await committed(term)
        gone = Delete(parts(at)[0].encode())
        await at.store.apply(Request(writes=(gone,)))

        with pytest.raises(Corrupt):
            await loaded(at.store)
        found = [fault for fault in faults(at.store) if "log-parts" in fault]
        assert found

    scenario(main)
