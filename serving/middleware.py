"""Outer middleware of every program: request ids, bounds, error answers and counts.

Pure ASGI. A request that it refuses is answered as problem+json. Frequent plain requests are called
directly, without the framework's search for a route (docs/decisions/0164).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from fastapi import FastAPI, Response
from prometheus_client import Counter, Histogram
from starlette.middleware.errors import ServerErrorMiddleware

from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError
from metasrv_base.log import lines_of_request
from metasrv_base.wire.http.asgi import (
    Answering,
    App,
    Receive,
    Scope,
    Send,
    check_head,
    given_id,
    new_id,
)
from serving.answers import as_it_is
from serving.head_as_get import head_as_get
from serving.timed_stream import end_connection

NOT_ALLOWED = "method-not-allowed"

log = structlog.get_logger()

Count: TypeAlias = Callable[[Scope, int, float], None]
"""Counts an answer: the request, the status, and the seconds that it took."""
Direct: TypeAlias = Callable[[Scope, Receive], Awaitable[Response | None] | None]
"""Calls the route of a request. None, at once or as the result: the framework finds the route."""


async def admit_all(scope: Scope, receive: Receive) -> Receive:
    """Leaves query and body to the routes."""
    return receive


def find_route(scope: Scope, receive: Receive) -> Awaitable[Response | None] | None:
    """Every request goes through the framework."""
    return None


@dataclass(frozen=True, slots=True)
class MiddlewareDeps:
    """The parts of the middleware that differ between programs."""

    clock: Clock
    count: Count
    admit: Callable[[Scope, Receive], Awaitable[Receive]] = admit_all
    """Judges the route, query and body of a request. Returns the body for its route. Raises
    MetaError."""
    direct: Direct = find_route
    shown: Callable[[MetaError, str], MetaError] = as_it_is
    """An error as the clients of a path may see it."""
    new_id: Callable[[], str] = new_id


def with_outer_middleware(app: FastAPI, deps: MiddlewareDeps) -> "ServingMiddleware":
    """Puts the outer middleware in front of the whole framework, whose own layers take a tenth of a
    short request. The framework's layer that answers unexpected errors is removed, so that they
    reach the middleware."""
    layers = app.build_middleware_stack()
    assert isinstance(layers, ServerErrorMiddleware), "the outermost layer answers errors"
    app.middleware_stack = layers.app
    return ServingMiddleware(app, deps)


class ServingMiddleware:
    def __init__(self, app: App, deps: MiddlewareDeps) -> None:
        self.behind = app
        self._at = deps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.behind(scope, receive, send)
        elif scope["method"] == "HEAD":
            await head_as_get(self._serve, scope, receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = given_id(scope) or self._at.new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        scope.setdefault("app", self.behind)  # as the framework has it, where it is behind this one
        answering = Answering(send, request_id)
        began_ms = self._at.clock.mono_ms()
        try:
            check_head(scope)
            receive = await self._at.admit(scope, receive)
            with lines_of_request(request_id):
                called = self._at.direct(scope, receive)
                answer = None if called is None else await called
                await (self.behind if answer is None else answer)(scope, receive, answering)
        except Exception as error:
            with lines_of_request(request_id):
                if not answering.status:
                    await self._refuse(error, scope, answering)
                elif not await _ended_early(error, scope, receive):
                    raise
        finally:
            seconds = (self._at.clock.mono_ms() - began_ms) / 1000
            self._at.count(scope, answering.status, seconds)

    async def _refuse(self, error: Exception, scope: Scope, answering: Answering) -> None:
        path = scope["path"]
        if isinstance(error, MetaError):
            allowed = error.facts.get("allowed") if error.code == NOT_ALLOWED else None
            more = [(b"allow", str(allowed).encode())] if allowed is not None else []
            await answering.refuse(self._at.shown(error, path), path, more)
        else:
            log.error("request_failed", path=path, exc_info=error)
            await answering.refuse(Corrupt("internal"), path)


async def _ended_early(error: Exception, scope: Scope, receive: Receive) -> bool:
    """Ends the connection of an answer that has begun, so that its reader sees that it is not
    whole. False for a fault of the program, and where the server cannot end a connection."""
    refusal = error.__cause__ if isinstance(error, RuntimeError) else error  # as the framework does
    if isinstance(refusal, MetaError) and not isinstance(refusal, Corrupt):
        log.info("answer_cut", path=scope["path"], code=refusal.code)
        return await end_connection(scope, receive)
    log.error("request_failed", path=scope["path"], exc_info=error)
    return False


def counted(requests: Counter, took: Histogram, call_of: Callable[[str], str]) -> Count:
    """Counts by call and status. *call_of*: the name of a path among the calls."""

    def count(scope: Scope, status: int, seconds: float) -> None:
        call = call_of(scope["path"]) if status != 404 else "unknown"
        requests.labels(call, str(status)).inc()
        took.labels(call).observe(seconds)

    return count
