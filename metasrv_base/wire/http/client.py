"""The one HTTP client: several servers, one deadline, and answers that are values or our errors.

A failure before the request left is `Unavailable`; a failure after it may have arrived is
`Unknown`, unless the method is safe: then nothing can have been done (P1 says what to do
with an `Unknown`). Each server is asked at most once in a call; whoever calls repeats the call.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Required, Self, TypedDict, TypeVar, Unpack

import httpx
import orjson
from pydantic import BaseModel, ValidationError

from metasrv_base.errors import Corrupt, MetaError, NotLeader, Unavailable, Unknown
from metasrv_base.token import OwnToken
from metasrv_base.wire.http.addresses import is_weaker, servers_to_ask
from metasrv_base.wire.http.http1_connection import ANSWER_BYTES_MAX, LIMIT, AnswerTooLongError
from metasrv_base.wire.http.pooled_transport import KeptTransport
from metasrv_base.wire.problem.problems import error_of

M = TypeVar("M", bound=BaseModel)

CONNECT_MS_MAX = 2_000  # a live server on our networks accepts within milliseconds
HOPS_MAX = 2  # to leaders that were named; a third would be an election in progress
ANSWER_WITHIN_MS = "x-answer-within-ms"
"""Header of a request: the time from its arrival, in milliseconds, in which its sender wants the
answer. What a server tries again meanwhile it then answers with its last refusal, which says what
is not done; a sender that has given up could only say that it was perhaps done."""
URLS_KEPT = 256  # parsed lately: to parse one takes longer than to write the request

_SAFE = frozenset({"GET", "HEAD"})
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_ASK_ANOTHER = frozenset({"not-leader", "no-leader", "not-ready", "stale"})


class Options(TypedDict, total=False):
    """Keyword arguments of a request."""

    deadline_ms: Required[int]
    """Milliseconds from now for the whole call, every server included."""
    try_ms: int
    """Time in ms for which one server may be silent before the next is tried. Default: the whole
    deadline. Only a repeatable request is then sent to another server."""
    margin_ms: int
    """Time in ms by which a server is told to answer earlier than it is waited for, so that its
    refusal is heard (`ANSWER_WITHIN_MS`); no further server is asked with less left. Default: they
    are told nothing."""
    json: object
    """A pydantic model, or anything that JSON can hold."""
    content: bytes
    """A body that is ready; give its `content-type` in `headers`."""
    headers: Mapping[str, str]
    params: Mapping[str, str | int | bool]
    answer_bytes_max: int
    """The longest body of an answer, in bytes; the rest is not read, and the call fails. Default:
    ANSWER_BYTES_MAX."""
    repeatable: bool
    """Whether a second copy does no harm. Default: for safe methods, PUT, and requests with an
    `Idempotency-Key`."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A success: 2xx, or 304."""

    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    content: bytes
    url: str
    """The server that answered."""

    def json(self) -> Any:
        """Raises Corrupt if the server sent no JSON."""
        try:
            return orjson.loads(self.content)
        except orjson.JSONDecodeError as error:
            raise Corrupt("internal", what="answer", url=self.url) from error

    def body(self, model: type[M]) -> M:
        """The answer as a wire model. Raises Corrupt if it is not one."""
        try:
            return model.model_validate_json(self.content)
        except ValidationError as error:
            raise Corrupt("internal", what=model.__name__, url=self.url) from error


class HttpClient:
    """Asks the servers in turn, beginning with the one that answered last. An async context."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        token: OwnToken | str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        named_by: Sequence[str] = (),
    ) -> None:
        """Opens no connection yet. *named_by* are the servers that named *urls*; none if the
        program's own settings did."""
        assert urls, "a client needs a server"
        self._urls = self._configured = tuple(url.rstrip("/") for url in urls)
        self._named_by = tuple(named_by)
        self._preferred = self._urls[0]
        self.has_answered = False
        """Whether any server has answered, whatever it said."""
        self._transport = transport or KeptTransport()
        self._token = token if isinstance(token, OwnToken) else OwnToken(token)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.aclose()

    @property
    def urls(self) -> tuple[str, ...]:
        """Servers in the order in which they are tried."""
        rest = [url for url in self._urls if url != self._preferred]
        return (self._preferred, *rest)

    def learn(self, urls: Iterable[str]) -> None:
        """Takes the servers that there are now, not those learnt before (`servers_to_ask`)."""
        self._urls = servers_to_ask(self._configured, tuple(urls)) or self._urls

    def headers_for(self, url: str) -> Mapping[str, str]:
        """The headers of every request to *url*. Raises Unavailable if the token may not go
        there."""
        shown = self._token.headers
        if shown and is_weaker(url, self._named_by):
            why = "no token goes there without TLS: a server with TLS named it"
            raise Unavailable("not-ready", what=url, sent=False, reason=why)
        return shown

    async def request(self, method: str, path: str, **options: Unpack[Options]) -> HttpAnswer:
        """The answer of the first server that gives one.

        Raises what the server's problem says, Unavailable if no server was reached, Unknown if one
        may have done it.
        """
        loop = asyncio.get_running_loop()
        call = _Call.of(method, path, options, loop.time() + options["deadline_ms"] / 1000)
        waiting = list(self.urls)
        hops = 0
        last: MetaError | None = None
        while waiting and loop.time() < (call.until if last is None else call.asks_until):
            url = waiting.pop(0)
            try:
                answer = await self._try(url, call)
            except MetaError as error:
                last = _worse(last, error)
                leader = _leader_of(error, url)
                if leader is not None and hops < HOPS_MAX:
                    hops += 1
                    waiting = [leader, *(other for other in waiting if other != leader)]
                elif not _ask_another(error, call):
                    break
            else:
                self._preferred = url
                return answer
        last = last or Unavailable("not-ready", what="the deadline")
        if isinstance(last, Unavailable | Unknown) and len(self.urls) > 1:
            self._preferred = self.urls[1]
        raise last

    async def _try(self, url: str, call: "_Call") -> HttpAnswer:
        """Sends the request to one server, once."""
        response = await self._send(url, call)
        if response.status_code < 300 or response.status_code == 304:
            return HttpAnswer(response.status_code, response.headers, response.content, url)
        raise error_of(response.status_code, _problem(response))

    async def _send(self, url: str, call: "_Call") -> httpx.Response:
        """The answer, read. Failures of the transport as ours: a connection that was never made
        carried nothing."""
        now, shown = asyncio.get_running_loop().time(), self.headers_for(url)
        try:
            async with asyncio.timeout(call.share(now)):
                request = call.request(url, shown, now)
                response = await self._transport.handle_async_request(request)
                await response.aread()
                self.has_answered = True
                return response
        except (httpx.RequestError, TimeoutError) as error:
            if call.method in _SAFE or isinstance(error, _UNSENT):
                raise unanswered(url, error) from error
            raise Unknown("outcome-unknown", url=url, **_reason(error)) from error


def unanswered(url: str, error: Exception) -> Unavailable:
    """The error of a request that *url* did not answer, and that it never got or that changes
    nothing."""
    if isinstance(error, _UNSENT):
        why = f"no connection to {url} could be made"
        return Unavailable("not-ready", what=url, sent=False, reason=why)
    return Unavailable("not-ready", what=url, **_reason(error))


def _reason(error: Exception) -> dict[str, str]:
    """The fact `reason` is a server's word, but for an answer that was too long."""
    return {"reason": str(error)} if isinstance(error, AnswerTooLongError) else {}


@dataclass(frozen=True, slots=True)
class _Call:
    """A request, ready to be sent to any server. `until` is in seconds of the loop's clock."""

    method: str
    path: str
    content: bytes | None
    headers: Mapping[str, str]
    params: Mapping[str, str | int | bool]
    repeatable: bool
    answer_bytes_max: int
    try_s: float
    margin_s: float
    until: float

    @classmethod
    def of(cls, method: str, path: str, options: Options, until: float) -> "_Call":
        headers = {name.lower(): value for name, value in options.get("headers", {}).items()}
        content = options.get("content")
        if (value := options.get("json")) is not None:
            assert content is None, "one body"
            content = _dumped(value)
            headers.setdefault("content-type", "application/json")
        by_nature = method in _SAFE or method == "PUT" or "idempotency-key" in headers
        return cls(
            method=method,
            path=path,
            content=content,
            headers=headers,
            params=options.get("params", {}),
            repeatable=options.get("repeatable", by_nature),
            answer_bytes_max=options.get("answer_bytes_max", ANSWER_BYTES_MAX),
            try_s=options.get("try_ms", options["deadline_ms"]) / 1000,
            margin_s=options.get("margin_ms", 0) / 1000,
            until=until,
        )

    @property
    def asks_until(self) -> float:
        """The time from which no further server is asked."""
        return self.until - self.margin_s

    def share(self, now: float) -> float:
        """Seconds that the next server may take."""
        return max(0.0, min(self.try_s, self.until - now))

    def request(self, url: str, always: Mapping[str, str], now: float) -> httpx.Request:
        """Returns the request to the server *url*. *always*: headers of every request."""
        share = self.share(now)
        within_ms = max(1, int((share - self.margin_s) * 1000))
        within = {ANSWER_WITHIN_MS: str(within_ms)} if self.margin_s else {}
        connect_s = min(CONNECT_MS_MAX / 1000, share / 2)
        timeout = {"connect": connect_s, "read": share, "write": share, "pool": share}
        return httpx.Request(
            self.method,
            _parsed(url + self.path),
            content=self.content,
            headers={**always, **self.headers, **within},
            params=dict(self.params) or None,
            extensions={"timeout": timeout, LIMIT: self.answer_bytes_max},
        )


@lru_cache(URLS_KEPT)
def _parsed(url: str) -> httpx.URL:
    return httpx.URL(url)


def _ask_another(error: MetaError, call: _Call) -> bool:
    """Whether another server may do better."""
    if isinstance(error, Unknown):
        return call.repeatable
    return error.code in _ASK_ANOTHER


def has_no_server(error: BaseException) -> bool:
    """Whether no server of ours was at an address: its name is unknown, it refuses connections,
    its TLS fails, or it speaks no HTTP. False for silence, and for every answer."""
    cause = error.__cause__
    if isinstance(cause, AnswerTooLongError):
        return False
    return isinstance(cause, httpx.ConnectError | httpx.RemoteProtocolError)


def _worse(last: MetaError | None, error: MetaError) -> MetaError:
    """Returns the error to raise: an Unknown stays, since no later server can undo a request; so
    does one of a server, if there is none at the next address."""
    stays = last is not None and (isinstance(last, Unknown) or has_no_server(error))
    return last if last is not None and stays else error


def _leader_of(error: MetaError, url: str) -> str | None:
    """The leader that a server names; never from https to http."""
    leader = error.facts.get("leader_url")
    if not isinstance(error, NotLeader) or not isinstance(leader, str):
        return None
    same_scheme = leader.partition("://")[0] == url.partition("://")[0]
    return leader.rstrip("/") if same_scheme else None


def _problem(response: httpx.Response) -> object:
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None


def _dumped(value: object) -> bytes:
    if isinstance(value, BaseModel):
        return value.model_dump_json().encode()
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode()
