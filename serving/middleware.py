"""The door of a program of the data plane: sizes, paths, JSON and time limits, before any route.

Pure ASGI. What is refused here is answered as problem+json. Arrow bodies pass: their routes read
them within bounds of their own.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from prometheus_client import Counter, Histogram

from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError, Refused
from metasrv_base.log import lines_of_request
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import (
    Answering,
    App,
    Receive,
    Scope,
    Send,
    check_head,
    given_id,
    new_id,
    read_body,
    replaying,
)

PARSED_AT_ONCE_BYTES = 64 << 10
"""A larger body is parsed in a thread: it would hold up heartbeats."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class MiddlewareDeps:
    """What the door stands in."""

    clock: Clock
    requests: Counter
    """By `call` and `status`."""
    request_seconds: Histogram
    """By `call`."""
    call_of: Callable[[str], str]
    """What a path is counted as."""
    json_bytes_max: Callable[[Scope], int | None]
    """Of a body that must be strict JSON; None: the route takes the body as it comes."""


class ServingMiddleware:
    def __init__(
        self, app: App, doorway: MiddlewareDeps, new_request_id: Callable[[], str] = new_id
    ) -> None:
        self._app = app
        self._at = doorway
        self._new_id = new_request_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = given_id(scope) or self._new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        answering = Answering(send, request_id)
        started_ms = self._at.clock.mono_ms()
        try:
            check_head(scope)
            limit = self._at.json_bytes_max(scope)
            if limit is not None:
                receive = await _checked_body(scope, receive, limit)
            with lines_of_request(request_id):
                await self._app(scope, receive, answering)
        except MetaError as error:
            await answering.refuse(error, scope["path"])
        except Exception:
            with lines_of_request(request_id):
                log.exception("request_failed", path=scope["path"])
            if answering.status:  # its rest cannot be made up: the connection is cut
                raise
            await answering.refuse(Corrupt("internal"), scope["path"])
        finally:
            call = self._at.call_of(scope["path"]) if answering.status != 404 else "unknown"
            self._at.requests.labels(call, str(answering.status)).inc()
            seconds = (self._at.clock.mono_ms() - started_ms) / 1000
            self._at.request_seconds.labels(call).observe(seconds)


async def _checked_body(scope: Scope, receive: Receive, limit_bytes: int) -> Receive:
    """The whole body, once it is known to be strict JSON of a bounded size."""
    media = media_type(scope)
    body = await read_body(receive, limit_bytes)
    if body and media != "application/json":
        raise Refused("unsupported-media-type", found=media)
    if len(body) > PARSED_AT_ONCE_BYTES:
        await asyncio.to_thread(strict_json.parse, body)
    elif body:
        strict_json.parse(body)
    return replaying(body, receive)


def media_type(scope: Scope) -> str:
    """Of the body, in small letters, without parameters."""
    given: bytes = dict(scope["headers"]).get(b"content-type", b"")
    return given.partition(b";")[0].strip().lower().decode("latin-1")
