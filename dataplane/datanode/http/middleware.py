"""Requests that a datanode admits: strict JSON of bounded size, and batches as streams."""

import re
from collections.abc import Mapping

from dataplane.datanode.metrics import NodeMetrics
from metasrv_base.clock import Clock
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import Receive, Scope, replaying
from metasrv_base.wire.node.promises import PROMISES_BYTES_MAX
from serving.json_body import json_body
from serving.middleware import Direct, MiddlewareDeps, counted, find_route

ORDERS_BYTES_MAX = 32 << 20
"""4,096 orders of one request, each with a table's columns."""
KEYS_BYTES_MAX = 32 << 20
"""10,000 keys of a read in hexadecimal, 1 KiB each and some long ones."""
_LIMITS: Mapping[str, int] = {
    "orders": ORDERS_BYTES_MAX,
    "get": KEYS_BYTES_MAX,
    "promises": PROMISES_BYTES_MAX,
}
_REGION = re.compile(r"/regions/[^/]+")


def middleware_deps(
    metrics: NodeMetrics, clock: Clock, direct: Direct = find_route
) -> MiddlewareDeps:
    count = counted(metrics.requests, metrics.request_seconds, _call_of)
    return MiddlewareDeps(clock, count, _admit, direct)


async def _admit(scope: Scope, receive: Receive) -> Receive:
    """Leaves a body of JSON in the state of the request, as it was sent."""
    limit = _json_bytes_max(scope)
    if limit is None:
        return receive
    body = scope["state"]["body"] = await json_body(scope, receive, limit)
    return replaying(body, receive)


def _call_of(path: str) -> str:
    return _REGION.sub("/regions/{region_id}", path)[:64]


def _json_bytes_max(scope: Scope) -> int | None:
    """Returns the limit of a JSON body; None if the route takes the body as a stream of bytes."""
    if scope["method"] != "POST" or scope["path"].endswith(("/batch", "/append")):
        return None
    return _LIMITS.get(scope["path"].rpartition("/")[2], strict_json.BODY_BYTES_MAX)
