"""GET /v1/events over sockets: watchers come, are refused, stall and go, and nobody waits."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import get_args

import orjson
import pytest

from keys.model.log import TableAltered
from metasrv.api.catalog import events
from metasrv.api.openapi import PATH as PATH_OF_DOCUMENT
from metasrv_base.wire.events.events import CatalogEvent, VersionEvents
from metasrv_base.wire.http import sse
from serving.guard import Bounds
from tests.keys.catalog.logs import update
from tests.metasrv.api.rig import Server, follower_of, leader
from tests.metasrv.service.catalog.event_watcher import Block, block_in
from tests.serving.sockets import serving

PATIENCE_S = 120.0
ROOT = Path(__file__).parents[4]
PATH = "/v1/events"


@dataclass
class Connection:
    """One watcher by TCP."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes = b""
    told: list[Block] = field(default_factory=list)
    _rest: bytes = b""

    async def next(self) -> None:
        """Reads what the server has sent with one call."""
        async with asyncio.timeout(PATIENCE_S):
            size = int(await self.reader.readline(), 16)
            assert size, "the stream is over"
            text = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        *whole, self._rest = (self._rest + text).split(sse.BOUNDARY)
        self.told += map(block_in, whole)

    async def until(self, version: int) -> list[int]:
        """Reads until it was told the events of *version*. Returns the versions told."""
        while version not in self.versions[-1:]:
            await self.next()
        return self.versions

    @property
    def versions(self) -> list[int]:
        return [block.version for block in self.told if isinstance(block, VersionEvents)]

    async def closed(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


async def connected(port: int, query: str = "", headers: str = "") -> Connection:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {PATH}{query} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
    return Connection(reader, writer, head)


async def places(one: Server, taken: int) -> None:
    """Waits until so many places of watchers are taken."""
    async with asyncio.timeout(PATIENCE_S):
        for _ in repeat(None):
            if one.state.watchers.open == taken:
                return
            await asyncio.sleep(0)


async def read_to_end(connection: socket.socket) -> int:
    """Returns the number of bytes."""
    loop, size = asyncio.get_running_loop(), 0
    async with asyncio.timeout(PATIENCE_S):
        while part := await loop.sock_recv(connection, 1 << 20):
            size += len(part)
    return size


@asynccontextmanager
async def watched(one: Server) -> AsyncIterator[int]:
    async with serving(Bounds(), one.app) as port:
        yield port


async def test_given_a_leader_and_a_follower_when_watched_then_both_tell_all_events() -> None:
    async with leader() as led, follower_of(led) as other:
        async with watched(led) as port, watched(other) as second:
            watchers = [await connected(port, "?since=1"), await connected(second, "?since=1")]
            await led.make("a")
            await led.client.delete(
                "/v1/catalogs/main/schemas/public/tables/a", headers={"Prefer": "wait=10"}
            )
            found = [await each.until(led.version) for each in watchers]
            for each in watchers:
                await each.closed()

        assert found[0] == found[1] == list(range(2, led.version + 1))
        first = next(block for block in watchers[0].told if isinstance(block, VersionEvents))
        (event,) = first.events
        assert (event.type, event.by is not None, event.request_id is not None) == (
            "table.created",
            True,
            True,
        )
        assert b"content-type: text/event-stream" in watchers[0].head


async def test_given_a_watcher_when_it_resumes_by_its_last_id_then_nothing_twice() -> None:
    async with leader() as one, watched(one) as port:
        first = await connected(port)
        await first.next()
        await one.make("a")
        await first.until(one.version)
        await first.closed()
        seen = one.version
        await one.make("b")

        again = await connected(port, "?since=1", f"Last-Event-ID: {seen}\r\n")
        await again.until(one.version)
        await again.closed()

        assert first.versions + again.versions == list(range(2, one.version + 1))


@pytest.mark.parametrize(
    "query",
    [
        "?since=x",
        "?since=-1",
        "?since=1.0",
        "?from=1",
        "?table_id=a",
        "?catalog=a.b",
        "?table=",
        "?catalog=x&schema=y.z",
    ],
)
async def test_given_a_query_that_makes_no_sense_then_it_is_refused(query: str) -> None:
    async with leader() as one:
        answer = await one.client.get(f"{PATH}{query}")

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


async def test_given_more_watchers_than_a_server_takes_then_503_until_one_goes() -> None:
    async with leader() as one, watched(one) as port:
        one.state.watchers.most = 20
        watchers = [await connected(port) for _ in range(20)]
        for each in watchers:
            await each.next()

        refused = [await connected(port) for _ in range(5)]
        await watchers[0].closed()
        await places(one, 19)
        late = await connected(port)

        for each in refused:
            assert each.head.startswith(b"HTTP/1.1 503")
            assert b"retry-after:" in each.head.lower()
        assert late.head.startswith(b"HTTP/1.1 200")
        for each in (*watchers, *refused, late):
            await each.closed()
        await places(one, 0)


async def test_given_a_server_that_has_not_loaded_then_503() -> None:
    async with leader() as one:
        one.state.follower.log.loaded.clear()

        answer = await one.client.get(PATH)

        assert (answer.status_code, answer.json()["code"]) == (503, "not-ready")


def grow(one: Server, number: int, text: str) -> None:
    """Another version of a table, of which the store knows nothing."""
    version = one.version + 1
    (info,) = (table.info for table in one.state.follower.catalog.tables.values())
    new = info.model_copy(update={"version": number + 2, "options": {"comment": text}})
    one.state.follower.log.offer(update(version, TableAltered(info=new)), version)


@pytest.mark.slow
async def test_given_a_watcher_that_never_reads_then_it_is_cut_and_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "STALLED_S", 0.2)
    async with leader() as one, watched(one) as port:
        quick = await connected(port)
        loop, still = asyncio.get_running_loop(), socket.socket()
        still.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        still.setblocking(False)
        await loop.sock_connect(still, ("127.0.0.1", port))
        await loop.sock_sendall(still, f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await places(one, 2)
        await one.make("t")
        version = one.version

        for number in range(400):
            grow(one, number, "x" * 20_000)
        await quick.until(version + 400)
        await places(one, 1)

        assert one.state.watchers.lost == {"stalled": 1}
        assert quick.versions[-400:] == list(range(version + 1, version + 401))
        with still:
            assert await read_to_end(still) < 400 * 20_000
        await quick.closed()


def test_given_the_document_then_it_lists_every_event_by_its_type() -> None:
    document = orjson.loads((ROOT / PATH_OF_DOCUMENT).read_bytes())
    schemas = document["components"]["schemas"]
    items = schemas["VersionEvents"]["properties"]["events"]["items"]
    union, _ = get_args(CatalogEvent)

    mapping = items["discriminator"]["mapping"]
    assert items["discriminator"]["propertyName"] == "type"
    assert len(mapping) == len(get_args(union))
    for kind, ref in mapping.items():
        schema = schemas[ref.rpartition("/")[2]]
        assert schema["properties"]["type"]["const"] == kind
        assert {"version", "committed_at", "by", "request_id", "procedure_id"} <= set(
            schema["required"]
        )
    answer = document["paths"][PATH]["get"]["responses"]["200"]
    assert list(answer["content"]) == [sse.MEDIA_TYPE]
