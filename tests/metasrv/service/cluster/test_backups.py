"""POST /v1/backups: every key at one revision, whatever is changed meanwhile."""

import asyncio
from typing import Any

import httpx
import pytest

from keys.catalog.log.revision_pins import PIN_MS, revision_pins
from keys.key import Range
from keys.model.catalogs import CatalogNameKey
from keys.store.kv import Put, Request
from keys.store.scan import scan
from metasrv.leadership.log.compaction import STORE_HISTORY_MS, LogCompaction
from metasrv.service.cluster import backups
from metasrv_base.backup.backup_file import BackupHeader
from metasrv_base.backup.backup_reader import BackupReader
from metasrv_base.errors import MetaError
from serving.timed_stream import TimedStream
from tests.metasrv.api.rig import DEADLINE_MS, Server, follower_of, leader

STEP_MS = 100_000

Stored = dict[str, tuple[bytes, int]]


async def stored(one: Server, revision: int = 0) -> Stored:
    items, _ = await scan(one.kv, Range(b"", b"\0"), deadline_ms=DEADLINE_MS, revision=revision)
    return {item.key.decode(): (item.value, item.mod_revision) for item in items}


def read(data: bytes) -> tuple[BackupHeader, Stored]:
    reader = BackupReader()
    keys = {key.key: (key.raw, key.revision) for key in reader.feed(data)}
    return reader.close(), keys


async def fill(one: Server, count: int) -> None:
    """More keys than one page has."""
    for first in range(0, count, 100):
        writes = tuple(
            Put(b"__setting/s%05d" % number, b"{}") for number in range(first, first + 100)
        )
        await one.kv.txn(Request(writes=writes), deadline_ms=DEADLINE_MS)


async def test_given_a_cluster_when_backed_up_then_each_key_is_there() -> None:
    async with leader() as one:
        await one.make()
        before = await stored(one)

        answer = await one.client.post("/v1/backups")
        header, keys = read(answer.content)

        assert answer.status_code == 200
        assert header.cluster_id in answer.headers["content-disposition"]
        assert keys == before
        assert str(CatalogNameKey("main")) in keys
        assert one.state.backups == 0


async def test_given_changes_while_it_is_sent_then_it_is_of_one_revision() -> None:
    async with leader() as one:
        await fill(one, 1_000)
        before, sent = await stored(one), [b""]
        backup = await backups.begun(one.state)

        async for part in backup.parts():
            sent.append(part)
            await one.make(f"t{len(sent)}")
        header, keys = read(b"".join(sent))

        assert len(sent) > 4, "pages, between which tables were made"
        assert keys == before == await stored(one, header.revision)
        assert await stored(one) != before


async def test_given_a_follower_whose_leader_is_gone_then_it_makes_one() -> None:
    gone = httpx.MockTransport(lambda request: httpx.Response(500))
    async with leader() as one, follower_of(one, gone) as other:
        answer = await other.client.post("/v1/backups")

        assert read(answer.content)[1] == await stored(one)


async def test_given_a_store_that_is_compacted_meanwhile_then_the_file_says_so() -> None:
    async with leader() as one:
        await fill(one, 1_000)
        backup = await backups.begun(one.state)
        parts = backup.parts()
        sent = await anext(parts) + await anext(parts)
        await one.make()
        await one.kv.compact(one.kv.revision, deadline_ms=DEADLINE_MS)
        sent += b"".join([part async for part in parts])

        with pytest.raises(MetaError) as raised:
            read(sent)
        assert raised.value.code == "history-expired"


async def test_given_a_backup_that_is_sent_when_the_leader_compacts_then_not_above_it() -> None:
    async with leader() as one:
        await fill(one, 2_000)
        before = await stored(one)
        backup = await backups.begun(one.state)
        listed = (await one.client.get("/v1/catalog/pins")).json()["revisions"]
        parts = backup.parts()
        sent = [await anext(parts)]
        await one.make("later")
        task = LogCompaction(one.term, one.kv, one.state.follower, one.clock)
        await task.compact_store()
        for _ in range(10):
            one.clock.ahead_ms += STEP_MS
            sent.append(await anext(parts))
        await task.compact_store()
        header, keys = read(b"".join(sent + [part async for part in parts]))

        assert 10 * STEP_MS > STORE_HISTORY_MS > PIN_MS > STEP_MS, "it is renewed meanwhile"
        assert one.kv._store.compacted == header.revision
        assert keys == before
        assert [(pin["what"], pin["revision"]) for pin in listed] == [("a backup", header.revision)]
        assert await revision_pins(one.kv, deadline_ms=DEADLINE_MS) == ()


async def test_given_a_reader_that_has_died_when_the_leader_compacts_then_its_pin_goes() -> None:
    async with leader() as one:
        await backups.begun(one.state)  # and never ended
        await one.make("later")
        newest = one.kv.revision
        task = LogCompaction(one.term, one.kv, one.state.follower, one.clock)
        await task.compact_store()
        one.clock.ahead_ms += STORE_HISTORY_MS
        await task.compact_store()

        assert one.kv._store.compacted == newest
        assert await revision_pins(one.kv, deadline_ms=DEADLINE_MS) == ()


async def test_given_a_store_without_space_then_a_backup_is_made_without_a_pin() -> None:
    async with leader() as one:
        one.kv._quota.quota_bytes = 1
        before = await stored(one)

        answer = await one.client.post("/v1/backups")

        assert read(answer.content)[1] == before == await stored(one)


async def test_given_two_that_are_being_made_then_503_for_a_third_until_one_has_ended() -> None:
    async with leader() as one:
        first, _ = [await backups.begun(one.state) for _ in range(2)]

        refused = await one.client.post("/v1/backups")
        first.ended()
        taken = await one.client.post("/v1/backups")

        assert (refused.status_code, refused.json()["code"]) == (503, "not-ready")
        assert "Retry-After" in refused.headers
        assert taken.status_code == 200


async def test_given_a_store_that_is_silent_then_no_place_is_lost() -> None:
    async with leader() as one:

        async def silent(*_: Any, **__: Any) -> Any:
            raise MetaError("not-ready")

        kept, one.kv.range = one.kv.range, silent  # type: ignore[method-assign]
        with pytest.raises(MetaError):
            await backups.begun(one.state)
        one.kv.range = kept  # type: ignore[method-assign]

        assert one.state.backups == 0


async def test_given_a_reader_that_takes_nothing_then_its_place_is_free_again() -> None:
    async with leader() as one:
        backup = await backups.begun(one.state)
        stream = TimedStream(backup.parts(), "x", send_s=0.01, ended=backup.ended)

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            await asyncio.Event().wait()

        with pytest.raises((TimeoutError, BaseExceptionGroup)):
            await stream({"type": "http", "asgi": {"spec_version": "2.3"}}, receive, send)
        assert one.state.backups == 0
