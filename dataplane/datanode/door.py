"""The door of the datanode: sizes, paths, JSON and time limits, before any route is asked.

Pure ASGI. What is refused here is answered as problem+json. Arrow bodies pass: their route reads
them within bounds of its own (bodies.py).
"""

import asyncio
import re
from collections.abc import Callable, Mapping

import structlog

from base.clock import Clock
from base.errors import Corrupt, MetaError, Refused
from base.log import lines_of_request
from base.wire import strict_json
from base.wire.asgi import (
    Answering,
    App,
    Receive,
    Scope,
    Send,
    check_head,
    given_id,
    read_body,
    replaying,
)
from dataplane.datanode.metrics import NodeMetrics

ORDERS_BYTES_MAX = 32 << 20
"""4,096 orders of one request, each with a table's columns."""
KEYS_BYTES_MAX = 32 << 20
"""10,000 keys of a read in hexadecimal, 1 KiB each and some long ones."""
PARSED_AT_ONCE_BYTES = 64 << 10
"""A larger body is parsed in a thread: it would hold up heartbeats."""
_LIMITS: Mapping[str, int] = {"orders": ORDERS_BYTES_MAX, "get": KEYS_BYTES_MAX}
_REGION = re.compile(r"/regions/[^/]+")

log = structlog.get_logger()


class Door:
    def __init__(
        self, app: App, metrics: NodeMetrics, clock: Clock, new_id: Callable[[], str]
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = given_id(scope) or self._new_id()
        scope.setdefault("state", {})["request_id"] = request_id
        answering = Answering(send, request_id)
        started_ms = self._clock.mono_ms()
        try:
            check_head(scope)
            if _takes_json(scope):
                receive = await _checked_body(scope, receive)
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
            call = _REGION.sub("/regions/{region_id}", scope["path"])[:64]
            call = call if answering.status != 404 else "unknown"
            self._metrics.requests.labels(call, str(answering.status)).inc()
            seconds = (self._clock.mono_ms() - started_ms) / 1000
            self._metrics.request_seconds.labels(call).observe(seconds)


def _takes_json(scope: Scope) -> bool:
    return scope["method"] == "POST" and not scope["path"].endswith("/batch")


async def _checked_body(scope: Scope, receive: Receive) -> Receive:
    """The whole body, once it is known to be strict JSON of a bounded size."""
    media = dict(scope["headers"]).get(b"content-type", b"").partition(b";")[0].strip().lower()
    limit = _LIMITS.get(scope["path"].rpartition("/")[2], strict_json.BODY_BYTES_MAX)
    body = await read_body(receive, limit)
    if body and media != b"application/json":
        raise Refused("unsupported-media-type", found=media.decode("latin-1"))
    if len(body) > PARSED_AT_ONCE_BYTES:
        await asyncio.to_thread(strict_json.parse, body)
    elif body:
        strict_json.parse(body)
    return replaying(body, receive)
