"""Forwards requests that only the leader can answer: one hop, marked, never in a circle.

Pure ASGI, inside the outer middleware: only well-formed requests for existing routes arrive here.
"""

from collections.abc import Iterable
from contextlib import nullcontext

import httpx
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keys.model.cluster import LeaderRecord
from metasrv.api.http.answers import VERSION_HEADER
from metasrv.service.catalog.reading import is_open
from metasrv.service.requests.request_context import prefer_wait
from metasrv.service.state.state import ServerState
from metasrv.service.views.views import VIEWS
from metasrv_base.errors import MetaError, Unavailable, Unknown
from metasrv_base.wire.http import sse
from metasrv_base.wire.http.addresses import is_weaker
from metasrv_base.wire.http.transport import Transport
from metasrv_base.wire.language.views import PATH as VIEWS_PATH

MARK = "metasrv-forwarded"
"""Names the server that passed a request on. Who gets a marked one answers it or refuses it."""
CONNECT_S = 2.0  # a live server on our networks accepts within milliseconds
ANSWER_MS = 20_000  # beyond what the client asked to wait: recovery of a new leader, slow commits
APPLY_MS = 5_000  # until what the leader has committed is applied here
LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=32, keepalive_expiry=3.0)

_LEADERS = (
    "/v1/procedures",
    "/v1/locks",
    "/v1/failovers",
    "/v1/nodes",
    "/v1/regions",
    "/v1/schema-leases",
    "/v1/catalog/pins",
    *(f"{VIEWS_PATH}/{view.name}" for view in VIEWS.values() if view.is_leaders),
)
_ANYONES = ("/v1/backups",)
"""Not changes, whatever their method says."""
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OURS = frozenset({"host", "content-length", "x-request-id", MARK})
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

Headers = Iterable[tuple[bytes, bytes]]


class Forward:
    def __init__(
        self, app: ASGIApp, state: ServerState, transport: httpx.AsyncBaseTransport | None
    ) -> None:
        self._app = app
        self._state = state
        self._http = httpx.AsyncClient(
            transport=transport or Transport(limits=LIMITS),
            trust_env=False,
            follow_redirects=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leader = self._state.other_leader
        here = scope["type"] != "http" or self._state.leads
        if here or not (is_the_leaders(scope["method"], scope["path"]) or self._is_open(scope)):
            await self._app(scope, receive, send)
            return
        if leader is None or _is_marked(scope):
            raise Unavailable("no-leader")
        if is_weaker(leader.url, (self._state.facts.url,)):
            reason = f"{leader.url} is reached without TLS, this server with: nothing is passed on"
            raise Unavailable("no-leader", reason=reason)
        await self._pass_on(leader, scope, receive, send)

    def _is_open(self, scope: Scope) -> bool:
        """A read as of a time that this server cannot tell of, and a leader perhaps can."""
        if self._state.other_leader is None or _is_marked(scope) or not scope["query_string"]:
            return False
        return is_open(self._state, scope["query_string"])

    async def _pass_on(
        self, leader: LeaderRecord, scope: Scope, receive: Receive, send: Send
    ) -> None:
        message = await receive()
        writes, wait_ms = scope["method"] != "GET", _wait_ms(scope)
        request = self._http.build_request(
            scope["method"],
            _url(leader, scope),
            content=message.get("body", b""),
            headers=self._headers(scope),
            timeout=httpx.Timeout((wait_ms + ANSWER_MS) / 1000, connect=CONNECT_S),
        )
        is_long_poll = wait_ms > 0 and not writes
        until_we_end = self._state.while_serving() if is_long_poll else nullcontext()
        try:
            async with self._state.as_long_as(leader), until_we_end:
                response = await self._http.send(request, stream=True)
        except (httpx.RequestError, TimeoutError) as error:
            raise _lost(error, writes=writes) from error
        try:
            await self._must_be_applied(response, writes=writes)
            await self._stream(response, send)
        finally:
            await response.aclose()

    def _headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        kept = _end_to_end(scope["headers"])
        request_id = scope["state"]["request_id"]
        return [
            *kept,
            (b"x-request-id", request_id.encode()),
            (MARK.encode(), self._state.facts.server.encode()),
        ]

    async def _must_be_applied(self, response: httpx.Response, *, writes: bool) -> None:
        """Waits until this server has applied the change: a client that is told of it here must
        find it here (docs/protocols.md P7)."""
        version = response.headers.get(VERSION_HEADER)
        if not writes or not response.is_success or version is None:
            return
        try:
            await self._state.follower.wait_for(int(version), deadline_ms=APPLY_MS)
        except Unavailable as error:
            reason = f"it made version {version}, which this server has not applied yet"
            raise Unknown("outcome-unknown", reason=reason) from error

    async def _stream(self, response: httpx.Response, send: Send) -> None:
        """The answer as it comes, byte for byte; events end in order when either server does."""
        await send(_start(response))
        if response.headers.get("content-type", "").startswith(sse.MEDIA_TYPE):
            await self._events(response, send)
        else:
            async for part in response.aiter_raw():
                await send(_part(part))
        await send(_part(b"", more=False))

    async def _events(self, response: httpx.Response, send: Send) -> None:
        """Raises what cut the stream within an event: its rest cannot be made up."""
        last = sse.BOUNDARY
        try:
            async with self._state.while_serving():
                async for part in response.aiter_raw():
                    await send(_part(part))
                    last = (last + part)[-len(sse.BOUNDARY) :]
        except (httpx.RequestError, TimeoutError):
            if last != sse.BOUNDARY:
                raise
            await send(_part(sse.GOAWAY))


def is_the_leaders(method: str, path: str) -> bool:
    """Changes, and reads of what only the leader has in memory."""
    if not path.startswith("/v1/") or path in _ANYONES:
        return False
    return method != "GET" or path.startswith(_LEADERS)


def _is_marked(scope: Scope) -> bool:
    return any(name.lower() == MARK.encode() for name, _ in scope["headers"])


def _url(leader: LeaderRecord, scope: Scope) -> httpx.URL:
    """The path exactly as it came: the outer middleware has checked its escapes."""
    query = scope["query_string"]
    raw = scope["raw_path"] + (b"?" + query if query else b"")
    return httpx.URL(leader.url).copy_with(raw_path=raw)


def _wait_ms(scope: Scope) -> int:
    headers = dict(scope["headers"])
    return prefer_wait(headers.get(b"prefer", b"").decode("latin-1")) or 0


def _lost(error: Exception, *, writes: bool) -> MetaError:
    """Returns the error for a request without an answer: one that never left was not done; of those
    that left, only a read is surely without effect."""
    if isinstance(error, _UNSENT) or not writes:
        return Unavailable("no-leader")
    return Unknown("outcome-unknown", reason="the leader's answer was lost")


def _end_to_end(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The headers without those of one connection, and without those that this server sets anew."""
    pairs = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip().lower()
        for name, value in pairs
        if name == b"connection"
        for part in value.decode("latin-1").split(",")
    }
    gone = _HOP_BY_HOP | _OURS | named
    return [(name, value) for name, value in pairs if name.decode("latin-1") not in gone]


def _start(response: httpx.Response) -> Message:
    headers = [
        (name, value)
        for name, value in _end_to_end(response.headers.raw)
        if name not in (b"date", b"server")
    ]
    length = response.headers.get("content-length")
    if length is not None:
        headers.append((b"content-length", length.encode()))
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


def _part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
