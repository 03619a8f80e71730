"""The stream of the catalog from one metasrv after the other: `GET /internal/v1/catalog/watch`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
import orjson
import structlog

from dataplane.frontend.catalog.catalog import LiveCatalog
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.rng import Rng
from metasrv_base.token import OwnToken
from metasrv_base.wire.frontend.feed import ALIVE_MS, FeedAlive, Goaway, read_line
from metasrv_base.wire.http.addresses import servers_to_ask
from metasrv_base.wire.http.transport import Transport
from metasrv_base.wire.problem.problems import error_of

PATH = "/internal/v1/catalog/watch"
SILENT_MS = 4 * ALIVE_MS
"""The time without a line after which another server is asked."""
BACKOFF = Backoff(first_ms=50, max_ms=1_000)
CONNECT_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of metasrv that a frontend asks, with its token and transport."""

    urls: Sequence[str]
    token: OwnToken | None = None
    transport: httpx.AsyncBaseTransport | None = None
    """The transport of requests; None for TCP."""


class Feed:
    """`run` keeps the catalog moving for ever."""

    def __init__(
        self,
        catalog: LiveCatalog,
        servers: Servers,
        clock: Clock,
        rng: Rng,
    ) -> None:
        self._catalog = catalog
        self._urls = self._configured = tuple(url.rstrip("/") for url in servers.urls)
        self._clock = clock
        self._rng = rng
        self._token = servers.token or OwnToken(None)
        self._transport = servers.transport
        self._turn = 0
        self._reload = asyncio.Event()

    def learn(self, urls: Sequence[str]) -> None:
        """Takes the servers that there are now, not those learnt before (`servers_to_ask`)."""
        self._urls = servers_to_ask(self._configured, urls) or self._urls

    def reload(self) -> None:
        """Begins anew, from a snapshot, at the next server. Called when the stream may be stuck."""
        self._reload.set()

    async def run(self) -> None:
        failures = 0
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        transport = self._transport or Transport()
        async with httpx.AsyncClient(transport=transport, timeout=timeout, trust_env=False) as http:
            while True:
                url = self._urls[self._turn % len(self._urls)]
                self._turn += 1
                version = self._catalog.version
                try:
                    await self._follow(http, url)
                except (MetaError, httpx.RequestError, TimeoutError, ValueError) as error:
                    log.warning("catalog_stream_lost", url=url, error=str(error)[:200])
                self._catalog.stream_ended()
                failures = 0 if self._catalog.version != version else failures + 1
                wait_ms = BACKOFF.delay_ms(max(1, failures), self._rng.random())
                await self._clock.sleep_ms(wait_ms)

    async def _follow(self, http: httpx.AsyncClient, url: str) -> None:
        """One stream, until it ends or another is wanted. Raises what broke it."""
        params: dict[str, int] = {}
        if self._catalog.version is not None and not self._reload.is_set():
            params["from"] = self._catalog.version
        self._reload.clear()
        loop = asyncio.get_running_loop()
        async with (
            asyncio.timeout(SILENT_MS / 1000) as patience,
            http.stream("GET", url + PATH, params=params, headers=self._token.headers) as answer,
        ):
            if answer.status_code != httpx.codes.OK:
                raise error_of(answer.status_code, _problem(await answer.aread()))
            async for text in answer.aiter_lines():
                patience.reschedule(loop.time() + SILENT_MS / 1000)
                line = read_line(text)
                if isinstance(line, Goaway) or self._reload.is_set():
                    return
                if isinstance(line, FeedAlive) and line.is_stale:
                    raise Unavailable("stale", what=url)
                self._catalog.take(line)
        raise Unavailable("not-ready", what=url, reason="the stream ended")


def _problem(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
