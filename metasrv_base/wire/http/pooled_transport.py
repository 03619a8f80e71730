"""The transport under our own client: connections that are kept, whole answers.

httpx's own took a fifth of the processor time of a create (docs/decisions/0070).
"""

import asyncio
from ssl import SSLContext

import httpx

from metasrv_base.wire.http.addresses import leads_to_us
from metasrv_base.wire.http.http1_connection import Exchange

CONNECTIONS_MAX = 64  # of one client; who comes later waits
IDLE_MAX = 16  # kept for the next request, of each server
IDLE_S = 3.0  # less than the 5 s of uvicorn, so that none is closed under a request

Origin = tuple[str, str, int]
_PORTS = {"http": 80, "https": 443}


class KeptTransport(httpx.AsyncBaseTransport):
    """Honours the timeouts `pool` and `connect` of a request; whoever asks bounds the rest.

    A name is judged by where it has led, before anything is sent: who registered it may have made
    it lead elsewhere since (DNS rebinding).
    """

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(CONNECTIONS_MAX)
        self.idle: dict[Origin, list[Exchange]] = {}
        """Idle connections by server, the last one used at the end."""
        self._tls: SSLContext | None = None
        self._is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        timeout = request.extensions.get("timeout", {})
        await self._enter(request, timeout.get("pool"))
        try:
            origin = _origin(request.url)
            exchange = self._kept(origin) or await self._open(request, timeout.get("connect"))
            try:
                return await exchange.ask(request, body)
            finally:
                self._keep(origin, exchange)
        finally:
            self._room.release()

    async def aclose(self) -> None:
        """Closes idle connections; a request in flight ends first and its connection is closed
        after it."""
        self._is_closed = True
        for exchanges in self.idle.values():
            for exchange in exchanges:
                exchange.close()
        self.idle.clear()

    async def _enter(self, request: httpx.Request, wait_s: float | None) -> None:
        """Takes a place among the connections; whoever takes it gives it back."""
        if not self._room.locked():
            await self._room.acquire()
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._room.acquire()
        except TimeoutError as error:
            raise httpx.PoolTimeout("all connections are busy", request=request) from error

    def _kept(self, origin: Origin) -> Exchange | None:
        """The one that was used last."""
        idle, oldest = self.idle.get(origin, []), asyncio.get_running_loop().time() - IDLE_S
        while idle:
            exchange = idle.pop()
            if exchange.is_open and exchange.idle_since > oldest:
                return exchange
            exchange.close()
        return None

    def _keep(self, origin: Origin, exchange: Exchange) -> None:
        """Unless it failed, or still waits for an answer that nobody wants any more."""
        idle = self.idle.setdefault(origin, [])
        if exchange.is_open and len(idle) < IDLE_MAX and not self._is_closed:
            idle.append(exchange)
        else:
            exchange.close()

    async def _open(self, request: httpx.Request, wait_s: float | None) -> Exchange:
        scheme, host, port = _origin(request.url)
        tls = self._trusted() if scheme == "https" else None
        try:
            async with asyncio.timeout(wait_s):
                made, exchange = await asyncio.get_running_loop().create_connection(
                    Exchange, host, port, ssl=tls
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout("not accepted in time", request=request) from error
        except OSError as error:
            raise httpx.ConnectError(str(error), request=request) from error
        if not leads_to_us(made.get_extra_info("peername")):
            exchange.close()
            raise httpx.ConnectError("no program of ours is at that address", request=request)
        return exchange

    def _trusted(self) -> SSLContext:
        self._tls = self._tls or httpx.create_ssl_context(trust_env=False)
        return self._tls


def _origin(url: httpx.URL) -> Origin:
    return url.scheme, url.host, url.port or _PORTS[url.scheme]
