"""The door of metasrv: paths, routes, sizes, strict JSON and time limits, before any route runs.

Pure ASGI. What is refused here is answered as problem+json, like everything else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog

from metasrv.api.http.answers import told
from metasrv.api.http.body import BodyLimits, checked_body
from metasrv.api.http.metrics import ServerMetrics
from metasrv.api.http.route_table import UNKNOWN, Met, RouteTable
from metasrv_base.clock import Clock
from metasrv_base.errors import Corrupt, MetaError
from metasrv_base.log import lines_of_request
from metasrv_base.wire.http.asgi import Answering, App, Receive, Scope, Send, check_head, given_id
from metasrv_base.wire.http.strict_json import check_query

NOT_ALLOWED = "method-not-allowed"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ApiMiddlewareDeps:
    """What the door stands in."""

    routes: RouteTable
    metrics: ServerMetrics
    clock: Clock
    new_id: Callable[[], str]
    limits: BodyLimits


class ApiMiddleware:
    def __init__(self, app: App, doorway: ApiMiddlewareDeps) -> None:
        self._app = app
        self._at = doorway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = given_id(scope) or self._at.new_id()
        state: dict[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        answering = Answering(send, request_id)
        began_ms = self._at.clock.mono_ms()
        met: Met | None = None
        try:
            check_head(scope)
            met = self._at.routes.meet(scope["method"], scope["path"])
            check_query(scope["query_string"])
            body = await checked_body(scope, receive, met, self._at.limits)
            state["json"], state["body_bytes"] = body.value, len(body.raw)
            with lines_of_request(request_id):
                await self._app(scope, body.replay(receive), answering)
        except MetaError as error:
            allowed = error.facts.get("allowed") if error.code == NOT_ALLOWED else None
            more = [(b"allow", str(allowed).encode())] if allowed is not None else []
            await answering.refuse(told(error, scope["path"]), scope["path"], more)
        except Exception:
            with lines_of_request(request_id):
                log.exception("request_failed")
            if answering.status:  # its rest cannot be made up: the connection is cut
                raise
            await answering.refuse(Corrupt("internal"), scope["path"])
        finally:
            route = met.template if met else UNKNOWN
            method = scope["method"] if scope["method"] in _METHODS else UNKNOWN
            seconds = (self._at.clock.mono_ms() - began_ms) / 1000
            self._at.metrics.answered(method, route, answering.status, seconds)
