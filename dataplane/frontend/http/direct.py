"""Requests about rows go to their routes at once, past the framework's search for them.

The framework takes longer to find a route than a frontend takes to find a row's region (decision
71). The functions are those of the routes, and take the request alone. The outer middleware
(serving/middleware.py) calls it.
"""

import re
from collections.abc import Awaitable, Callable, Mapping

from fastapi import Request, Response

from dataplane.frontend.http.api import get_rows, get_rows_by_keys, scan_rows, write_rows
from metasrv_base.wire.http.asgi import Receive, Scope

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


def called(scope: Scope, receive: Receive) -> Awaitable[Response] | None:
    """The answer of the route. None: the framework finds the route."""
    match = _PATH.fullmatch(scope["path"])
    route = match and _ROUTES.get((scope["method"], match["what"]))
    if match is None or route is None:
        return None
    named = {name: text for name, text in match.groupdict().items() if text is not None}
    return route(Request({**scope, "path_params": named}, receive))
