"""Requests that metasrv admits: known routes, strict JSON; and how answers are counted."""

from dataclasses import dataclass, field

from metasrv.api.http.body import BodyLimits, checked_body
from metasrv.api.http.metrics import ServerMetrics
from metasrv.api.http.route_table import UNKNOWN, RouteTable
from metasrv_base.wire.http.asgi import Receive, Scope
from metasrv_base.wire.http.strict_json import check_query

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Admission:
    """Judges a request before its route runs."""

    routes: RouteTable
    limits: BodyLimits = field(default_factory=BodyLimits)

    async def admit(self, scope: Scope, receive: Receive) -> Receive:
        """Leaves the parsed body, and the template of the route, in the state of the request.

        Raises as `RouteTable.meet`, `check_query` and `checked_body`.
        """
        met = self.routes.meet(scope["method"], scope["path"])
        scope["state"]["template"] = met.template
        check_query(scope["query_string"])
        body = await checked_body(scope, receive, met, self.limits)
        scope["state"] |= {"json": body.value, "body_bytes": len(body.raw)}
        return body.replay(receive)


def count(metrics: ServerMetrics, scope: Scope, status: int, seconds: float) -> None:
    method = scope["method"] if scope["method"] in _METHODS else UNKNOWN
    metrics.answered(method, scope["state"].get("template", UNKNOWN), status, seconds)
