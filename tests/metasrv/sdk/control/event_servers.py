"""Servers of events that answer what they were told, one script for each request."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import httpx
import orjson

from metasrv.sdk.control.events import EventFilters, EventSource, EventStream
from metasrv_base.errors import MetaError
from metasrv_base.wire.events.events import EventsReset, VersionEvents
from metasrv_base.wire.events.namespace_events import CatalogCreatedEvent
from metasrv_base.wire.http import sse
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.problem.problems import problem_of
from tests.fakes.chance import SeededRng

URLS = ("http://a", "http://b")
Part = bytes | Exception | asyncio.Event
"""A part of a body: bytes, a failure of the transport, or silence until the event is set."""
Script = MetaError | Exception | Sequence[Part]


def version(number: int, events: int = 1) -> bytes:
    """A version with so many events, as a server sends it."""
    made = tuple(
        CatalogCreatedEvent(
            version=number,
            committed_at="2026-01-01T00:00:00Z",
            by=None,
            request_id=None,
            procedure_id=None,
            catalog_id=place,
            catalog=f"c{number}",
            options={},
            created_at="2026-01-01T00:00:00Z",
        )
        for place in range(events)
    )
    body = VersionEvents(version=number, events=made)
    return sse.event("version", body.model_dump_json(), str(number))


def position(number: int) -> bytes:
    return b":\nid: %d\n\n" % number


def reset(number: int) -> bytes:
    told = EventsReset(version=number, reason="expired")
    return sse.event("reset", told.model_dump_json(), str(number))


class Body(httpx.AsyncByteStream):
    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, asyncio.Event):
                await part.wait()
            else:
                raise part


@dataclass
class EventServers(httpx.AsyncBaseTransport):
    """`scripts`: by host, in order. A host without a script left refuses connections."""

    scripts: dict[str, list[Script]]
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Host and Last-Event-ID of each request."""
    queries: list[str] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.host
        self.asked.append((host, request.headers.get("last-event-id")))
        self.queries.append(request.url.query.decode())
        left = self.scripts.get(host)
        script = left.pop(0) if left else httpx.ConnectError("refused", request=request)
        if isinstance(script, MetaError):
            status, headers, problem = problem_of(script, "/v1/events", "r")
            return httpx.Response(status, headers=headers, stream=Body([orjson.dumps(problem)]))
        if isinstance(script, Exception):
            raise script
        headers = {"content-type": sse.MEDIA_TYPE}
        return httpx.Response(200, headers=headers, stream=Body(script), request=request)

    def stream(
        self,
        since: int | None = None,
        until: int | None = None,
        filters: EventFilters | None = None,
        patience_ms: int = 200,
    ) -> EventStream:
        http = HttpClient(URLS, transport=self)
        source = EventSource(http, SeededRng(1), patience_ms, self)
        return EventStream(source, since, until, filters or {})


async def versions(stream: EventStream, count: int) -> list[int]:
    """The versions of the next *count* items."""
    async with asyncio.timeout(120):
        return [(await anext(stream)).version for _ in range(count)]
