"""Faults that only a real etcd has: it dies, stops, is one of two, is shared."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from keys.store.etcd import EtcdKv
from keys.store.kv import Get, Put, Request, Watched
from metasrv_base.errors import Unavailable, Unknown
from tests.etcd.process import EtcdProcess, free_port

pytestmark = [pytest.mark.etcd, pytest.mark.process]

DEADLINE_MS = 30_000
SHORT_MS = 300
ENDS_S = 30  # all calls have ended by then, on a machine that has much to do
EVERYTHING = Get(b"", b"\0")
WRITE = Request(writes=(Put(b"a", b"1"),))


@pytest.fixture
async def kv(own_etcd: EtcdProcess) -> AsyncIterator[EtcdKv]:
    store = await EtcdKv.connect([own_etcd.endpoint], b"/mine/")
    yield store
    await store.close()


async def put(kv: EtcdKv, key: bytes) -> int:
    answer = await kv.txn(Request(writes=(Put(key, b""),)), deadline_ms=DEADLINE_MS)
    return answer.revision


async def test_given_a_watch_when_etcd_is_killed_and_restarted_then_no_event_is_lost_or_doubled(
    kv: EtcdKv, own_etcd: EtcdProcess
) -> None:
    start = await put(kv, b"0")
    found: asyncio.Queue[Watched] = asyncio.Queue(maxsize=100)

    async def follow() -> None:
        async for watched in kv.watch(b"", b"\0", start_revision=start):
            await found.put(watched)

    async with asyncio.timeout(240), asyncio.TaskGroup() as group:
        following = group.create_task(follow())
        await put(kv, b"1")
        seen = [await found.get(), await found.get()]
        await put(kv, b"2")
        await asyncio.to_thread(own_etcd.kill)
        await asyncio.to_thread(own_etcd.start)
        again = await EtcdKv.connect([own_etcd.endpoint], b"/mine/")
        last = await put(again, b"3")
        await again.close()
        while seen[-1].revision < last:
            seen.append(await found.get())
        following.cancel()

    events = [event for watched in seen for event in watched.events]
    assert [event.key for event in events] == [b"0", b"1", b"2", b"3"]
    assert [event.mod_revision for event in events] == [start, start + 1, start + 2, last]


async def test_given_a_stopped_etcd_when_called_then_a_write_is_unknown_and_a_read_unavailable(
    kv: EtcdKv, own_etcd: EtcdProcess
) -> None:
    lease = await kv.grant(60_000, deadline_ms=DEADLINE_MS)
    own_etcd.pause()

    async with asyncio.timeout(ENDS_S):
        with pytest.raises(Unknown):
            await kv.txn(WRITE, deadline_ms=SHORT_MS)
        with pytest.raises(Unavailable):
            await kv.txn(Request(reads=(Get(b"a"),)), deadline_ms=SHORT_MS)
        with pytest.raises(Unavailable):
            await kv.range(EVERYTHING, deadline_ms=SHORT_MS)
        with pytest.raises(Unknown):
            await kv.keep_alive(lease, deadline_ms=SHORT_MS)
    own_etcd.resume()

    assert await kv.keep_alive(lease, deadline_ms=DEADLINE_MS)


async def test_given_no_etcd_when_called_then_a_write_is_unknown_and_a_read_unavailable() -> None:
    kv = await EtcdKv.connect([f"127.0.0.1:{free_port()}"])

    with pytest.raises(Unknown):
        await kv.txn(WRITE, deadline_ms=SHORT_MS)
    with pytest.raises(Unavailable) as unavailable:
        await kv.range(EVERYTHING, deadline_ms=SHORT_MS)

    assert unavailable.value.__cause__ is not None
    await kv.close()


async def test_given_two_endpoints_when_one_is_dead_then_every_call_is_answered(
    etcd: str, etcd_prefix: bytes
) -> None:
    kv = await EtcdKv.connect([f"127.0.0.1:{free_port()}", etcd], etcd_prefix)

    revisions = [await put(kv, b"%d" % number) for number in range(10)]

    assert revisions == sorted(set(revisions))
    await kv.close()


@pytest.mark.case("greptime 69")
async def test_given_two_prefixes_when_both_write_one_key_then_neither_sees_the_other(
    etcd: str, etcd_prefix: bytes
) -> None:
    mine = await EtcdKv.connect([etcd], etcd_prefix)
    other = await EtcdKv.connect([etcd], etcd_prefix + b"other/")
    bare = await EtcdKv.connect([etcd], b"~" + etcd_prefix)

    start = await put(other, b"b")
    await put(bare, b"c")
    at = await put(mine, b"a")

    seen = (await other.range(EVERYTHING, deadline_ms=DEADLINE_MS)).items
    assert [item.key for item in seen] == [b"b"]
    async for watched in bare.watch(b"", b"\0", start_revision=start):
        assert [event.key for event in watched.events] == [b"c"]
        break
    inside = (await mine.range(Get(b"a", b"c"), deadline_ms=DEADLINE_MS)).items
    assert [(item.key, item.mod_revision) for item in inside] == [(b"a", at)]
    for kv in (mine, other, bare):
        await kv.close()


async def test_given_a_closed_store_when_called_or_watching_then_nobody_is_cancelled(
    etcd: str, etcd_prefix: bytes
) -> None:
    kv = await EtcdKv.connect([etcd], etcd_prefix)
    start = await put(kv, b"a")
    opened = asyncio.Event()

    async def follow() -> None:
        async for _ in kv.watch(b"", b"\0", start_revision=start):
            opened.set()

    async def close_once_opened() -> None:
        await opened.wait()
        await kv.close()

    ended, _ = await asyncio.gather(follow(), close_once_opened(), return_exceptions=True)

    assert isinstance(ended, Unavailable)
    with pytest.raises(Unavailable):
        await kv.range(EVERYTHING, deadline_ms=SHORT_MS)
