"""Parts of every program's ASGI application: request ids, checks of paths, bounded bodies,
errors."""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import orjson

from metasrv_base.errors import MetaError, Refused, Unavailable
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.problem.problems import problem_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REQUEST_ID_BYTES = 8
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CUT_SHORT = (408,)  # the rest of the body may never come


class Answering:
    """The answer on its way: marked with the request id, its status noted."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status = 0
        """0: no answer was begun."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            marked = [*message["headers"], (b"x-request-id", self._request_id.encode())]
            message = {**message, "headers": marked}
        await self._send(message)

    async def refuse(
        self, error: MetaError, path: str, more: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """*error* as problem+json, with *more* headers."""
        assert self.status == 0, "an answer is under way"
        status, headers, body = problem_of(error, path, self._request_id)
        data = orjson.dumps(body)
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        raw += [*more, (b"content-length", str(len(data)).encode())]
        if status in _CUT_SHORT:
            raw.append((b"connection", b"close"))
        await self({"type": "http.response.start", "status": status, "headers": raw})
        await self({"type": "http.response.body", "body": data})


def new_id() -> str:
    """Returns an id for a request whose client gave none."""
    return secrets.token_hex(REQUEST_ID_BYTES)


def given_id(scope: Scope) -> str | None:
    """The client's own X-Request-Id, if it is one that a log may hold."""
    header: str = dict(scope["headers"]).get(b"x-request-id", b"").decode("latin-1")
    return header if _REQUEST_ID.fullmatch(header) else None


def check_head(scope: Scope) -> None:
    """Raises Refused `bad-path` or `headers-too-large`."""
    strict_json.check_path(scope["raw_path"].partition(b"?")[0])
    size = sum(len(name) + len(value) for name, value in scope["headers"])
    if size > strict_json.HEADER_BYTES_MAX:
        raise Refused("headers-too-large", limit_bytes=strict_json.HEADER_BYTES_MAX)


async def read_body(
    receive: Receive, limit_bytes: int, timeout_ms: int = strict_json.BODY_TIMEOUT_MS
) -> bytes:
    """Raises Refused `body-too-large`, Unavailable `request-timeout`."""
    parts: list[bytes] = []
    total = 0
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Unavailable("request-timeout", reason="the client went away")
                parts.append(message.get("body", b""))
                total += len(parts[-1])
                if total > limit_bytes:
                    raise Refused("body-too-large", limit_bytes=limit_bytes)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError as error:
        raise Unavailable("request-timeout", limit_s=timeout_ms / 1000) from error


def replaying(body: bytes, receive: Receive) -> Receive:
    """Returns a receive channel for the application: the whole body as one message, then
    *receive*."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
