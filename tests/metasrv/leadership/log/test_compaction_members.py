"""Compaction beside holders, other servers and other requests, and what is gone behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keys.catalog.follower import Follower
from keys.model.holders import HolderRecord
from metasrv.leadership.log.compaction import LogCompaction
from metasrv.leadership.snapshot_requests import SnapshotRequest
from metasrv_base.wire.frontend.holders import AcknowledgeRequest
from tests.keys.catalog.snapshots import plain
from tests.metasrv.api.rig import CLUSTER, DEADLINE_MS, TABLES, Server, follower_of, leader

SNAPSHOTS = "/v1/catalog/snapshots"
WAIT = {"prefer": "wait=10"}


def compaction(one: Server) -> LogCompaction:
    return LogCompaction(one.term, one.kv, one.state.follower, one.clock)


def drop() -> SnapshotRequest:
    return SnapshotRequest(drops_history=True)


def holder(number: int) -> HolderRecord:
    return HolderRecord(
        holder_id=f"fe-{number}", incarnation="i", address="a", version="v", registered_at_ms=7
    )


@asynccontextmanager
async def compacting() -> AsyncIterator[Server]:
    """A leader that answers requests for snapshots."""
    async with leader(nodes=1) as one, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(compaction(one).run())
        yield one
        running.cancel()


@pytest.mark.case("catalog 121")
async def test_given_many_members_that_are_up_to_date_when_history_is_dropped_then_it_goes() -> (
    None
):
    async with leader(nodes=3) as one:
        await one.make("a")
        book, version = one.term.holders.book, one.version
        for number in range(20):
            book.registered(holder(number), version, (), one.clock.mono_ms())

        done = await compaction(one).compact(drop())

        assert (done.version, done.floor, done.deleted) == (version, version, version)


@pytest.mark.case("catalog 122")
async def test_given_a_member_of_which_nothing_is_known_when_history_is_dropped_then_it_stays() -> (
    None
):
    """It registered under an earlier leader; once it tells what it has, its word counts."""
    async with leader(nodes=1) as one:
        task, book = compaction(one), one.term.holders.book
        await task.compact(SnapshotRequest(drops_history=False))
        await one.make("a")
        book.found(holder(1))

        held = await task.compact(drop())
        heard = AcknowledgeRequest(
            cluster_id=CLUSTER,
            holder_id="fe-1",
            incarnation="i",
            sequence=1,
            version=one.version,
        )
        book.acknowledged(heard, one.clock.mono_ms())
        free = await task.compact(drop())

        assert held.floor < one.version
        assert free.floor == one.version


@pytest.mark.case("catalog 126")
async def test_given_two_requests_at_once_when_history_is_dropped_then_one_after_the_other() -> (
    None
):
    """The second finds nothing left of what the first has done."""
    async with compacting() as one:
        await one.make("a")
        version = one.version
        asked = (one.client.post(SNAPSHOTS, json={"drop_history": True}) for _ in range(4))

        answers = [answer.json() for answer in await asyncio.gather(*asked)]

        assert [answer["oldest_version"] for answer in answers] == [version] * 4
        assert sorted(answer["made"] for answer in answers) == [False, False, False, True]
        assert sorted(answer["deleted"] for answer in answers) == [0, 0, 0, version]


@pytest.mark.case("catalog 129")
async def test_given_a_server_that_never_had_the_history_when_it_goes_then_it_follows_on() -> None:
    async with leader(nodes=1) as one, asyncio.TaskGroup() as tasks:
        task = compaction(one)
        await one.make("a")
        await task.compact(SnapshotRequest(drops_history=False))
        begins_at = one.version
        late = Follower(one.kv, one.clock, deadline_ms=DEADLINE_MS)
        following = tasks.create_task(late.log.follow())
        await late.wait_for(begins_at, deadline_ms=DEADLINE_MS)
        assert late.at(begins_at - 1) is None
        await one.make("b")
        await task.compact(drop())
        await one.make("c")

        await late.wait_for(one.version, deadline_ms=DEADLINE_MS)

        assert plain(late.catalog) == plain(one.state.follower.catalog)
        assert not following.done()
        following.cancel()


@pytest.mark.case("catalog 132")
async def test_given_a_table_purged_before_when_history_is_dropped_then_nothing_is_left_of_it() -> (
    None
):
    """A server that starts then cannot read it as of a version that it was there. A table that was
    only dropped can still come back."""
    async with compacting() as one:
        purged, kept = await one.make("purged"), await one.make("kept")
        version, path = one.version, f"{TABLES}/purged?as_of=version:{one.version}"
        for name in ("purged", "kept"):
            await one.client.delete(f"{TABLES}/{name}", headers=WAIT)
        purge = {"table_id": purged["id"], "reason": "it was a mistake"}
        gone = await one.client.post("/v1/purges", json=purge, headers=WAIT)
        assert gone.status_code == 204, gone.text
        before = await one.client.get(path)

        await one.client.post(SNAPSHOTS, json={"drop_history": True})
        async with follower_of(one) as fresh:
            after = await fresh.client.get(path)
            catalog = fresh.state.follower.catalog

        assert (before.status_code, before.json()["id"]) == (200, purged["id"])
        assert version < one.version
        assert (after.status_code, after.json()["code"]) == (410, "history-expired")
        assert str(purged["id"]).encode() not in b"".join(
            item.key for item in one.kv.dump() if not item.key.startswith(b"__procedure")
        )
        assert [table.info.name for table in catalog.all_dropped()] == ["kept"]
        assert list(catalog.tables) == [kept["id"]]
