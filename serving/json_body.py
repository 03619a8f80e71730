"""Bodies of requests that must be strict JSON: read whole, within bounds, before a route runs."""

import asyncio
from typing import Any

from metasrv_base.errors import Refused
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import Receive, Scope, read_body

PARSED_AT_ONCE_BYTES = 64 << 10
"""A larger body is parsed in a thread: it would hold up heartbeats."""


async def parsed(body: bytes) -> Any:
    """Raises Refused `malformed-json`."""
    if len(body) > PARSED_AT_ONCE_BYTES:
        return await asyncio.to_thread(strict_json.parse, body)
    return strict_json.parse(body)


async def json_body(scope: Scope, receive: Receive, limit_bytes: int) -> bytes:
    """The whole body, once it is known to be strict JSON; empty: there was none.

    Raises Refused `body-too-large`, `unsupported-media-type`, `malformed-json`, Unavailable
    `request-timeout`.
    """
    media = media_type(scope)
    body = await read_body(receive, limit_bytes)
    if body and media != "application/json":
        raise Refused("unsupported-media-type", found=media)
    if body:
        await parsed(body)
    return body


def media_type(scope: Scope) -> str:
    """The media type of the body, in small letters, without parameters."""
    sent_type: bytes = dict(scope["headers"]).get(b"content-type", b"")
    return sent_type.partition(b";")[0].strip().lower().decode("latin-1")
