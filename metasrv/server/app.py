"""The ASGI app as a function of a server's state. It opens nothing and starts no task."""

from functools import partial

import httpx
from fastapi import FastAPI

from metasrv.api.direct import DirectApi
from metasrv.api.http.answers import visible_error
from metasrv.api.http.body import BodyLimits
from metasrv.api.http.forward import Forward
from metasrv.api.http.metrics import ServerMetrics
from metasrv.api.http.middleware import Admission, count
from metasrv.api.http.route_table import RouteTable
from metasrv.api.routes.routes import ROUTERS, bare_app
from metasrv.service.state.state import ServerState
from serving.middleware import MiddlewareDeps, ServingMiddleware, with_outer_middleware


def build_app(
    state: ServerState,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    limits: BodyLimits | None = None,
    metrics: ServerMetrics | None = None,
) -> ServingMiddleware:
    """Builds the server's HTTP application. *transport* reaches other servers; None: by TCP.

    The framework's own layers stand behind ours: a request that `DirectApi` calls meets none.
    """
    app = bare_app()
    metrics = metrics or ServerMetrics()
    app.state.server = state
    app.state.metrics = metrics
    state.on_term.append(lambda term: term.manager.on_end(metrics.ended))
    state.on_term.append(lambda term: term.holders.on_drained(metrics.holders.drained))
    deps = MiddlewareDeps(
        state.clock,
        count=partial(count, metrics),
        admit=Admission(RouteTable(ROUTERS), limits or BodyLimits()).admit,
        direct=DirectApi(state).called,
        shown=visible_error,
    )
    app.add_middleware(Forward, state=state, transport=transport)
    return with_outer_middleware(app, deps)


def build_ahead(app: ServingMiddleware) -> None:
    """Makes the routes of *app*. FastAPI makes them at the first request otherwise, in one piece
    that holds the event loop for a sixth of a second."""
    assert isinstance(app.behind, FastAPI), "as `build_app` makes it"
    nowhere = {"type": "http", "method": "GET", "path": "/-", "root_path": "", "headers": []}
    for route in app.behind.router.routes:
        route.matches(nowhere)
