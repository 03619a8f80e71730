"""Finds the route of a request before its body is read: 404, 405, or the body that it takes."""

from collections import defaultdict
from collections.abc import Iterable

from fastapi import APIRouter
from fastapi.routing import APIRoute

from metasrv_base.errors import NotFound, Refused
from metasrv_base.values.frozen import frozen

UNKNOWN = "unknown"


@frozen
class Met:
    """A route as the outer middleware needs it."""

    template: str
    """The path with its parameters in braces: a name for metrics."""
    takes_body: bool
    needs_body: bool


class RouteTable:
    """Every route of the application, in order; a parameter is one part of a path."""

    def __init__(self, routers: Iterable[APIRouter]) -> None:
        self._routes: defaultdict[int, list[APIRoute]] = defaultdict(list)
        """Routes by the number of slashes: most routes need not be compared."""
        for router in routers:
            for route in router.routes:
                if isinstance(route, APIRoute):
                    assert ":" not in route.path, "a parameter with slashes in it"
                    self._routes[route.path.count("/")].append(route)

    def meet(self, method: str, path: str) -> Met:
        """Raises NotFound for a path without a route, Refused("method-not-allowed") with every
        method that the path has."""
        routes = self._routes.get(path.count("/"), ())
        path_routes = [route for route in routes if route.path_regex.match(path)]
        if not path_routes:
            raise NotFound("not-found", what="route", name=path)
        for route in path_routes:
            if method in (route.methods or ()):
                body = route.body_field
                needed = body is not None and body.field_info.is_required()
                return Met(route.path, body is not None, needed)
        allowed = {name for route in path_routes for name in route.methods or ()}
        if "GET" in allowed:
            allowed.add("HEAD")  # answered as GET (serving/head_as_get.py)
        raise Refused("method-not-allowed", method=method, allowed=", ".join(sorted(allowed)))
