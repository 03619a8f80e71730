"""What the door of a datanode lets in: strict JSON of bounded size, and batches as they come."""

import re
from collections.abc import Mapping

from dataplane.datanode.metrics import NodeMetrics
from metasrv_base.clock import Clock
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import Scope
from serving.middleware import MiddlewareDeps

ORDERS_BYTES_MAX = 32 << 20
"""4,096 orders of one request, each with a table's columns."""
KEYS_BYTES_MAX = 32 << 20
"""10,000 keys of a read in hexadecimal, 1 KiB each and some long ones."""
_LIMITS: Mapping[str, int] = {"orders": ORDERS_BYTES_MAX, "get": KEYS_BYTES_MAX}
_REGION = re.compile(r"/regions/[^/]+")


def doorway(metrics: NodeMetrics, clock: Clock) -> MiddlewareDeps:
    return MiddlewareDeps(
        clock, metrics.requests, metrics.request_seconds, _call_of, _json_bytes_max
    )


def _call_of(path: str) -> str:
    return _REGION.sub("/regions/{region_id}", path)[:64]


def _json_bytes_max(scope: Scope) -> int | None:
    if scope["method"] != "POST" or scope["path"].endswith("/batch"):
        return None
    return _LIMITS.get(scope["path"].rpartition("/")[2], strict_json.BODY_BYTES_MAX)
