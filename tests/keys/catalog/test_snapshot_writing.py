"""Snapshots and what they replace: whatever is cut off where, every reader has the catalog."""

import asyncio

import pytest

from keys.catalog import snapshot_writing
from keys.catalog.catalog import Catalog
from keys.catalog.follower import Follower
from keys.catalog.snapshot_loading import load_snapshot, read_snapshots
from keys.catalog.snapshot_writing import with_newest
from keys.catalog.tables import part_filling
from keys.model.log import CatalogUpdateKey
from keys.model.snapshot.snapshots import (
    SNAPSHOTS_MAX,
    SnapshotPartKey,
    SnapshotRef,
    SnapshotVersion,
    SnapshotVersionKey,
)
from keys.store.kv import Delete, Put, Request, TxnAnswer
from keys.value import encode
from metasrv_base.errors import Corrupt, MetaError
from tests.keys.catalog.snapshots import (
    Cluster,
    Forgetful,
    Term,
    loaded_at,
    plain,
    ref_of,
    scenario,
)
from tests.keys.commit.leading_committer import (
    DEADLINE_MS,
    Fault,
    Store,
    lost_answer,
    lost_answer_and_deposed,
    lost_request,
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one item and deletions of two keys, so that each snapshot takes many writes."""
    monkeypatch.setattr(part_filling, "PART_JSON_BYTES", 100)
    monkeypatch.setattr(snapshot_writing, "DELETED_AT_ONCE", 2)


@pytest.mark.case("catalog 19", "catalog 27")
def test_given_a_snapshot_when_saved_then_servers_start_there_and_the_log_goes() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(120)
        assert await term.save()
        assert not await term.save(), "an equal one exists"
        old = cluster.versions[50]
        assert not await term.writer.save(old, log_bytes=1, now_ms=1), "a newer one exists"
        await term.change(3)
        await term.writer.raise_floor(121)
        await term.writer.collect()

        updates = cluster.keys(CatalogUpdateKey.under().start)
        assert updates == [str(CatalogUpdateKey(version)) for version in (122, 123, 124)]
        assert plain(await loaded_at(cluster.store, cluster.store.revision)) == plain(
            term.follower.catalog
        )

    scenario(main)


@pytest.mark.case("catalog 131")
def test_given_several_snapshots_when_the_floor_rises_then_the_log_begins_at_one_of_them() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        for _ in range(3):
            await term.change(10)
            assert await term.save()
        assert not await term.writer.raise_floor(10), "no snapshot is so old"
        assert await term.writer.raise_floor(25)
        assert not await term.writer.raise_floor(25)
        await term.writer.collect()

        snapshots = await read_snapshots(cluster.store, deadline_ms=DEADLINE_MS)
        assert snapshots is not None
        assert [ref.version for ref in snapshots.kept] == [21, 31]
        assert [snapshots.nearest(version) for version in (20, 21, 30, 31, 99)] == [
            None,
            snapshots.kept[0],
            snapshots.kept[0],
            snapshots.kept[1],
            snapshots.kept[1],
        ]
        assert cluster.keys(CatalogUpdateKey.under().start)[0] == str(CatalogUpdateKey(22))
        for ref in snapshots.kept:
            catalog = await load_snapshot(
                cluster.store, ref, deadline_ms=DEADLINE_MS, revision=cluster.store.revision
            )
            assert plain(catalog) == plain(cluster.versions[ref.version])

    scenario(main)


async def work(term: Term) -> None:
    """All that a leader does to snapshots, with changes in between."""
    await term.change(2)
    await term.save()
    await term.change(2)
    await term.save()
    await term.writer.raise_floor(term.follower.catalog.version)
    await term.writer.collect()
    await term.change()


def calls_of_work() -> int:
    counts: list[int] = []

    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        cluster.store.sent.clear()
        await work(term)
        counts.append(len(cluster.store.sent))

    scenario(main)
    return counts[0]


@pytest.mark.parametrize("fault", [lost_answer_and_deposed, lost_request, lost_answer])
@pytest.mark.slow
@pytest.mark.case("catalog 134")
def test_given_any_write_cut_off_when_another_leads_then_every_reader_has_the_catalog(
    fault: Fault,
) -> None:
    calls = calls_of_work()
    assert calls > 20
    for cut in range(calls):

        async def main(cluster: Cluster, cut: int = cut) -> None:
            first = await cluster.lead()
            begun = cluster.store.revision
            cluster.store.faults = [_through] * cut + [fault]
            task = cluster.loop.spawn("work", work(first))
            await asyncio.wait([task])
            if task.exception() is not None:
                assert isinstance(task.exception(), MetaError)
            second = await cluster.lead()
            await work(second)
            await every_revision(cluster, begun)
            assert_clean(cluster)

        scenario(main)


async def _through(store: Store, request: Request) -> TxnAnswer:
    return await store.apply(request)


async def every_revision(cluster: Cluster, begun: int) -> None:
    """A server that starts at any moment has the version that was declared then."""
    for revision in range(begun, cluster.store.revision + 1):
        catalog = await loaded_at(cluster.store, revision)
        known = cluster.versions.get(catalog.version)
        assert known is None or plain(catalog) == plain(known)


def assert_clean(cluster: Cluster) -> None:
    """Nothing is left of what was cut off."""
    item = next(i for i in cluster.store.dump() if i.key == bytes(SnapshotVersionKey()))
    stored = SnapshotVersion.model_validate_json(item.value)
    parts = {
        str(SnapshotPartKey(ref.version, part)) for ref in stored.kept for part in range(ref.parts)
    }
    assert set(cluster.keys(SnapshotPartKey.under().start)) == parts | {str(SnapshotVersionKey())}
    oldest = CatalogUpdateKey.parse(cluster.keys(CatalogUpdateKey.under().start)[0].encode())
    assert oldest.version == stored.floor + 1


@pytest.mark.case("catalog 120")
def test_given_a_deposed_leader_when_it_goes_on_then_it_deletes_and_adopts_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        old = await cluster.lead()
        await old.change(5)
        new = await cluster.lead()
        await new.change(5)
        assert await new.save()
        await new.change(1)
        before = cluster.store.dump()

        assert not await old.save(), "its own catalog is older than the snapshot"
        with pytest.raises(MetaError):
            await old.writer.save(new.follower.catalog, log_bytes=1, now_ms=1)
        with pytest.raises(MetaError):
            await old.writer.raise_floor(11)

        assert cluster.store.dump() == before

    scenario(main)


@pytest.mark.case("catalog 133")
def test_given_a_follower_two_snapshots_behind_when_etcd_was_compacted_then_it_jumps() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        follower = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS)
        cluster.loop.spawn("behind", follower.log.follow())
        await follower.wait_for(1, deadline_ms=DEADLINE_MS)
        cluster.loop.pause("behind", 500)
        for _ in range(2):
            await term.change(5)
            await term.save()
            await term.writer.raise_floor(term.follower.catalog.version)
            await term.writer.collect()
        await term.change(2)
        await cluster.store.compact(cluster.store.revision, deadline_ms=DEADLINE_MS)

        newest = term.follower.catalog
        caught_up = await follower.wait_for(newest.version, deadline_ms=5_000)

        assert plain(caught_up) == plain(newest)
        assert follower.oldest_version == 11
        assert follower.at(5) is None
        await term.change(1)
        await follower.wait_for(newest.version + 1, deadline_ms=5_000)

    scenario(main)


def test_given_a_running_follower_when_the_log_is_compacted_then_it_hears_and_goes_on() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        follower = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS)
        cluster.loop.spawn("server", follower.log.follow())
        await term.change(5)
        await term.save()
        await term.change(2)
        await follower.wait_for(8, deadline_ms=DEADLINE_MS)
        await term.writer.raise_floor(6)
        await term.writer.collect()
        await term.change(1)

        assert plain(await follower.wait_for(9, deadline_ms=DEADLINE_MS)) == plain(
            term.follower.catalog
        )
        assert follower.at(3) is not None, "it did not have to jump"
        assert follower.log.floor == 6
        assert follower.log.sizes.between(6, 9) == sum(
            len(item.value)
            for item in cluster.store.dump()
            if item.key.startswith(CatalogUpdateKey.under().start)
        )

    scenario(main)


def test_given_a_watch_that_loses_the_floor_when_the_log_is_compacted_then_it_is_read() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        kv = Forgetful(cluster.store)
        follower = Follower(kv, cluster.store.clock, deadline_ms=DEADLINE_MS)
        cluster.loop.spawn("server", follower.log.follow())
        await term.change(5)
        await follower.wait_for(6, deadline_ms=DEADLINE_MS)
        await term.save()
        await term.writer.raise_floor(6)
        await term.writer.collect()
        await term.change(1)

        assert (await follower.wait_for(7, deadline_ms=DEADLINE_MS)).version == 7
        assert follower.log.floor == 6

    scenario(main)


def test_given_a_leaders_own_updates_when_its_watch_is_lost_then_a_load_counts_their_bytes() -> (
    None
):
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(5)
        before = term.follower.catalog
        await term.follower.log.load()

        assert term.follower.catalog is before
        assert term.follower.log.sizes.between(0, 6) == sum(
            len(item.value)
            for item in cluster.store.dump()
            if item.key.startswith(CatalogUpdateKey.under().start)
        )

    scenario(main)


@pytest.mark.parametrize("version", [2, 7])
def test_given_an_update_above_the_snapshot_when_it_is_deleted_then_corrupt(version: int) -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(5)
        if version > 6:
            await term.save()
            await term.change(2)
        follower = Follower(cluster.store, cluster.store.clock, deadline_ms=DEADLINE_MS)
        task = cluster.loop.spawn("server", follower.log.follow())
        await follower.wait_for(6, deadline_ms=DEADLINE_MS)
        await cluster.store.apply(Request(writes=(Delete(bytes(CatalogUpdateKey(version))),)))
        await asyncio.wait([task])

        assert isinstance(task.exception(), Corrupt)
        with pytest.raises(Corrupt):
            await loaded_at(cluster.store, cluster.store.revision)

    scenario(main)


def test_given_a_snapshot_with_a_part_missing_or_changed_when_loaded_then_corrupt() -> None:
    async def main(cluster: Cluster) -> None:
        term = await cluster.lead()
        await term.change(5)
        await term.save()
        part = bytes(SnapshotPartKey(6, 1))
        item = next(item for item in cluster.store.dump() if item.key == part)
        head = next(i for i in cluster.store.dump() if i.key == bytes(SnapshotVersionKey()))
        empty = encode(SnapshotVersion(kept=()))
        for write in (
            Delete(part),
            Put(part, item.value[:-1]),
            Put(bytes(SnapshotPartKey(6, 0)), item.value),
            Put(head.key, empty),
            Put(head.key, head.value.replace(b'"digest":"', b'"digest":"0')),
        ):
            before = cluster.store.revision
            await cluster.store.apply(Request(writes=(write,)))
            with pytest.raises(Corrupt):
                await loaded_at(cluster.store, cluster.store.revision)
            old = {i.key: i.value for i in cluster.store._store.scan(b"", b"\0", before)}
            await cluster.store.apply(Request(writes=(Put(write.key, old[write.key]),)))
            assert (await loaded_at(cluster.store, cluster.store.revision)).version == 6

    scenario(main)


def test_given_more_snapshots_than_may_be_kept_then_the_oldest_and_the_newest_stay() -> None:
    kept: tuple[SnapshotRef, ...] = ()
    for version in range(1, SNAPSHOTS_MAX + 4):
        ref = ref_of(Catalog(version=version), []).model_copy(update={"log_bytes": 10})
        kept = with_newest(kept, ref)

    assert len(kept) == SNAPSHOTS_MAX
    assert [ref.version for ref in kept[:3]] == [1, 5, 6]
    assert sum(ref.log_bytes for ref in kept) == 10 * (SNAPSHOTS_MAX + 3)
