"""The stream of the catalog over HTTP: from any server, at no cost for the store, to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keys.store.kv import Get, KeyPage, Request, TxnAnswer
from keys.store.memory import MemoryKv
from metasrv.service.catalog.feed import Start, lines
from metasrv.service.state.feed_lines import GOAWAY
from metasrv.service.state.stream_places import STREAMS_MAX
from metasrv_base.feed.catalog_replica import FeedReader
from metasrv_base.wire.frontend.feed import MEDIA_TYPE, AddressChange, FeedAlive, read_line
from tests.keys.catalog.logs import World, first_update, update
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import Server, follower_of, leader, registration, state_of
from tests.metasrv.holders.reader import Reader, whole
from tests.metasrv.service.catalog.watch import WATCH


@asynccontextmanager
async def watching(one: Server) -> AsyncIterator["asyncio.Queue[bytes]"]:
    """The lines that a client is given, as ASGI: httpx's transport would give them only when all
    have come. Afterwards the server stops, and they end."""
    told: asyncio.Queue[bytes] = asyncio.Queue()
    asked = [{"type": "http.request", "body": b"", "more_body": False}]
    scope = {
        "type": "http",
        "method": "GET",
        "path": WATCH,
        "raw_path": WATCH.encode(),
        "query_string": b"",
        "headers": [],
    }

    async def receive() -> dict[str, Any]:
        if asked:
            return asked.pop()
        await asyncio.Event().wait()
        raise AssertionError("the client stays")

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            assert dict(message["headers"])[b"content-type"] == MEDIA_TYPE.encode()
        elif message["body"]:
            told.put_nowait(message["body"])

    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(one.app(scope, receive, send))
        yield told
        one.state.stop()
        await running


async def test_given_a_follower_when_watched_then_it_streams_what_the_leader_commits() -> None:
    async with leader() as led, follower_of(led) as other:
        await led.make("a")
        reading = FeedReader()

        async with watching(other) as told:
            while reading.mirror is None or reading.mirror.find("main", "public", "b") is None:
                line = read_line(await told.get())
                reading = reading.heard(line)
                if line.type == "alive" and led.version < 3:
                    await led.make("b")

        *_, last = [told.get_nowait() for _ in range(told.qsize())]
        assert last == GOAWAY
        assert reading.mirror.version == led.version
        assert reading.mirror.address_of("dn-1") == "http://dn-1:9000"
        table = reading.mirror.find("main", "public", "b")
        assert table is not None
        assert [column.name for column in table.columns] == ["id", "carrier"]
        assert {region.leader for region in table.regions} <= {"dn-1", "dn-2"}


async def test_given_a_leader_when_watched_then_it_says_who_leads() -> None:
    async with leader() as one:
        reader = Reader.of(one.state)

        line = await reader.until("alive")

        assert line == FeedAlive(version=one.version, leader="http://ms-1", is_stale=False)


@pytest.mark.slow
async def test_given_a_node_that_moves_then_its_new_address_is_told() -> None:
    async with leader() as one:
        reader = Reader.of(one.state)
        await reader.until("alive")
        assert reader.mirror.address_of("dn-1") == "http://dn-1:9000"

        moved = registration("dn-1", incarnation="i-2", address="http://dn-1:9999")
        await one.term.nodes.register(moved)
        one.clock.ahead_ms += 5_000
        line = await reader.until("address")

        assert line == AddressChange(node="dn-1", address="http://dn-1:9999", zone="z")
        assert reader.mirror.address_of("dn-1") == "http://dn-1:9999"


async def test_given_streams_when_the_server_stops_then_goaway_at_once_for_who_never_waits() -> (
    None
):
    async with leader() as one:
        for number in range(5):
            await one.make(f"t{number}")
        begun, new = lines(one.state, Start(None, None)), lines(one.state, Start(1, None))
        await anext(begun)

        one.state.stop()
        told = [[line async for line in stream] for stream in (begun, new)]

        assert [list(found)[-1] for found in told] == [GOAWAY, GOAWAY]
        assert max(len(found) for found in told) < 4
        assert one.state.streams.open == 0


async def test_given_a_stream_that_waits_when_the_server_stops_then_goaway() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        reader = Reader.of(one.state)
        await reader.until("alive")
        waiting = tasks.create_task(reader.until("goaway"))
        await asyncio.sleep(0)

        one.state.stop()

        assert (await waiting).type == "goaway"


@pytest.mark.parametrize(
    "query",
    ["?from=x", "?from=-1", "?from=1.0", "?tables=", "?tables=a", "?tables=1,", "?since=1"],
)
async def test_given_a_query_that_makes_no_sense_then_it_is_refused(query: str) -> None:
    async with leader() as one:
        answer = await one.client.get(f"{WATCH}{query}")

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_given_a_server_that_has_not_loaded_or_has_no_room_then_503() -> None:
    clock = ShiftedClock()
    kv = MemoryKv(clock)
    new = Server(state_of("ms-1", kv, clock), kv, clock)
    unloaded = await new.client.get(WATCH)
    new.state.follower.log.loaded.set()
    new.state.streams.open = STREAMS_MAX

    full = await new.client.get(WATCH)

    assert [(one.status_code, one.json()["code"]) for one in (unloaded, full)] == [
        (503, "not-ready")
    ] * 2


class CountedKv(MemoryKv):
    """Counts what it is asked."""

    calls = 0

    async def range(self, get: Get, **more: Any) -> KeyPage:
        self.calls += 1
        return await super().range(get, **more)

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        self.calls += 1
        return await super().txn(request, deadline_ms=deadline_ms)


async def test_given_a_hundred_readers_when_versions_come_then_the_store_is_not_asked() -> None:
    clock = ShiftedClock()
    kv, world = CountedKv(clock), World(4)
    state = state_of("ms-1", kv, clock)
    state.follower.log.offer(first_update(), 1)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(state.addresses.follow())
        await state.addresses.followed.wait()
        before = kv.calls
        readers = [Reader.of(state, None if n % 2 else 1) for n in range(100)]
        for reader in readers[::2]:
            reader.reading = FeedReader(whole(state.follower))

        for version in range(2, 40):
            state.follower.log.offer(update(version, world.entry()), version)
            clock.ahead_ms += 2_000
            for reader in readers:
                await reader.at(version)
        following.cancel()

    assert kv.calls == before
    assert all(reader.mirror.tables == readers[0].mirror.tables for reader in readers)
