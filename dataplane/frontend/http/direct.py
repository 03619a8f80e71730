"""Requests about rows go to their routes at once, past the framework's search for them.

The framework takes longer to find a route than a frontend takes to find a row's region (decision
71). The functions are those of the routes, and take the request alone. Pure ASGI, inside the door.
"""

import re
from collections.abc import Awaitable, Callable, Mapping

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dataplane.frontend.http.api import get_rows, get_rows_by_keys, scan_rows, write_rows

_PATH = re.compile(
    r"/v1/tables/(?:(?P<table_id>[^/]+)|(?P<catalog>[^/]+)/(?P<schema>[^/]+)/(?P<table>[^/]+))"
    r"/(?P<what>rows|rows/get|scan)"
)
_ROUTES: Mapping[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {
    ("GET", "rows"): get_rows,
    ("POST", "rows"): write_rows,
    ("POST", "rows/get"): get_rows_by_keys,
    ("GET", "scan"): scan_rows,
}


class DirectStatements:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises MetaError, which the door answers."""
        found = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        route = found and _ROUTES.get((scope["method"], found["what"]))
        if found is None or route is None:
            await self._app(scope, receive, send)
            return
        named = {name: text for name, text in found.groupdict().items() if text is not None}
        answer = await route(Request({**scope, "path_params": named}, receive, send))
        await answer(scope, receive, send)
