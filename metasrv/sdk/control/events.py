"""The catalog's events as an async iterator that outlives servers and connections."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypedDict

import httpx

from metasrv_base.errors import Corrupt, MetaError, Unavailable
from metasrv_base.rng import Rng
from metasrv_base.rows.retry import SERVICE_BACKOFF, attempts, may_ask_again
from metasrv_base.wire.events.events import (
    BEAT_MS,
    PATH,
    RESET,
    VERSION,
    EventsReset,
    read_version,
)
from metasrv_base.wire.http import sse
from metasrv_base.wire.http.client import CONNECT_MS_MAX, HttpClient, unanswered
from metasrv_base.wire.http.download import problem_in
from metasrv_base.wire.http.sse_blocks import SseBlock, SseBlocks
from metasrv_base.wire.http.transport import Transport
from metasrv_base.wire.problem.problems import error_of

if TYPE_CHECKING:
    from metasrv_base.wire.events.events import CatalogEvent

SILENT_S = 3 * BEAT_MS / 1000
"""Seconds without a sign of life after which another server is asked."""
OPEN_S = 10.0
"""Seconds in which a server must begin its answer: it may wait for the version asked for."""


class EventFilters(TypedDict, total=False):
    """Conditions that must all hold; None: any."""

    catalog: str | None
    schema: str | None
    """Its name, or `catalog.schema`."""
    table: str | None
    """Its name, before or after a rename: `table`, `schema.table` or `catalog.schema.table`."""
    table_id: int | None


@dataclass(frozen=True, slots=True)
class EventSource:
    """The servers of a stream. `patience_ms`: the time for which none of them may answer."""

    http: HttpClient
    rng: Rng
    patience_ms: int
    transport: httpx.AsyncBaseTransport | None = None
    """The transport of requests; None for TCP."""
    may_ask_again: Callable[[BaseException], bool] = may_ask_again
    """Whether to open a stream again after an error, within the patience."""


class EventStream:
    """An async iterator of events, in order, and an async context.

    Each event comes once. Servers may die: it goes on at another one, behind the last version that
    it has. Where events cannot be told, an `EventsReset` comes in their place: read the catalog at
    its version or a newer one; events after it follow. A call that is cancelled loses nothing. An
    iteration raises Unavailable when no server has answered for the patience of the client; the
    next one tries again.
    """

    def __init__(
        self,
        source: EventSource,
        since: int | None,
        until: int | None,
        filters: EventFilters,
    ) -> None:
        """Prepares a stream of events that follow version *since*; None: those from the server's
        version on. The iteration ends after the events of version *until*."""
        self._source = source
        self._until = until
        self._filters: Mapping[str, str | int] = {
            name: value for name, value in filters.items() if isinstance(value, str | int)
        }
        self._version = since
        self._items: deque[CatalogEvent | EventsReset] = deque()
        self._client: httpx.AsyncClient | None = None
        self._answer: httpx.Response | None = None
        self._parts: AsyncIterator[bytes] | None = None
        self._blocks = SseBlocks()
        self._is_begun = False
        self._turn = 0
        """Place of the server that is asked first."""
        self._mute = 0
        """Streams that ended without a block, one after the other."""

    @property
    def version(self) -> int | None:
        """All events up to this version were told, or are at hand. None: it has not begun."""
        return self._version

    async def begin(self) -> None:
        """Connects; events from now on are told. Returns at once if it has begun."""
        while not self._is_begun:
            await self._hear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> "CatalogEvent | EventsReset":
        while not self._items:
            if self._until is not None and (self._version or 0) >= self._until and self._is_begun:
                raise StopAsyncIteration
            await self._hear()
        return self._items.popleft()

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the connection. An iteration afterwards makes a new one."""
        await self._leave()
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    # What is heard ------------------------------------------------------------------------------

    async def _hear(self) -> None:
        """Takes the next piece of the stream. Where it ends or is silent, the next call goes to
        another server."""
        if self._parts is None:
            await self._open()
        assert self._parts is not None
        is_sound = False
        try:
            async with asyncio.timeout(SILENT_S):
                part = await anext(self._parts, b"")
            for block in self._blocks.take(part):
                self._take(block)
            is_sound = bool(part) and self._parts is not None
        except (httpx.RequestError, TimeoutError):
            return
        except ValueError as error:
            raise Corrupt("internal", what="events") from error
        finally:
            if not is_sound:  # also if the call is cancelled
                self._turn += 1
                await self._leave()

    def _take(self, block: SseBlock) -> None:
        self._is_begun = self._is_begun or block.event != "goaway"
        self._mute = 0
        if block.event == VERSION:
            version_events = read_version(block.data)
            if self._version is not None and version_events.version <= self._version:
                return
            is_next = self._version in (None, version_events.version - 1)
            if not (is_next or self._filters):
                raise Corrupt(
                    log="gap", expected=(self._version or 0) + 1, found=version_events.version
                )
            if self._until is None or version_events.version <= self._until:
                self._items += version_events.events
            self._version = version_events.version
        elif block.event == RESET:
            reset = EventsReset.model_validate_json(block.data)
            self._items.append(reset)
            self._version = reset.version
        elif not block.event and block.id is not None:
            self._version = max(self._version or 0, int(block.id))

    # The connection -----------------------------------------------------------------------------

    async def _open(self) -> None:
        """Opens a stream at the first server that gives one."""
        source, loop = self._source, asyncio.get_running_loop()
        if self._mute:
            wait_ms = SERVICE_BACKOFF.delay_ms(self._mute, source.rng.random())
            await asyncio.sleep(wait_ms / 1000)
        until = loop.time() + source.patience_ms / 1000
        async for attempt in attempts(until, source.rng, SERVICE_BACKOFF, source.may_ask_again):
            with attempt:
                await self._open_at_any()
        self._mute += 1

    async def _open_at_any(self) -> None:
        last: MetaError = Unavailable("not-ready", what="the service")
        urls = self._source.http.urls
        for number in range(len(urls)):
            url = urls[(self._turn + number) % len(urls)]
            try:
                await self._open_at(url)
            except Unavailable as error:
                last = error
            else:
                self._turn += number
                return
        raise last

    async def _open_at(self, url: str) -> None:
        headers = {**self._source.http.headers_for(url), "accept": sse.MEDIA_TYPE}
        if self._version is not None:
            headers["last-event-id"] = str(self._version)
        if self._client is None:
            self._client = httpx.AsyncClient(
                transport=self._source.transport or Transport(),
                trust_env=False,
                timeout=httpx.Timeout(None, connect=CONNECT_MS_MAX / 1000),
            )
        params = dict(self._filters)
        request = self._client.build_request("GET", url + PATH, params=params, headers=headers)
        try:
            async with asyncio.timeout(OPEN_S):
                answer = await self._client.send(request, stream=True)
        except (httpx.RequestError, TimeoutError) as error:
            raise unanswered(url, error) from error
        if answer.status_code != httpx.codes.OK:
            try:
                problem = await problem_in(answer)
            finally:
                await answer.aclose()
            raise error_of(answer.status_code, problem)
        self._answer, self._parts, self._blocks = answer, answer.aiter_raw(), SseBlocks()

    async def _leave(self) -> None:
        answer, self._answer, self._parts = self._answer, None, None
        if answer is not None:
            await answer.aclose()
