"""A whole request body, once it is known to be strict JSON of a bounded size, in bounded time."""

from dataclasses import dataclass
from typing import Any

from metasrv.api.http.route_table import Met
from metasrv_base.errors import Refused
from metasrv_base.values.frozen import frozen
from metasrv_base.wire.api.batches import BATCH_BYTES_MAX
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.http.asgi import Receive, Scope, read_body, replaying
from metasrv_base.wire.language.apply import APPLY_BYTES_MAX
from metasrv_base.wire.language.sql import SQL_BYTES_MAX
from serving.json_body import parsed

JSON = b"application/json"
HEARTBEAT_BYTES_MAX = 32 << 20  # 100,000 region statistics of 250 bytes, and some
_LARGE = {
    "/v1/apply": APPLY_BYTES_MAX,
    "/v1/batch": BATCH_BYTES_MAX,
    "/v1/sql": SQL_BYTES_MAX,
}
"""Routes whose bodies may be larger than others'."""
_WITHOUT = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class BodyLimits:
    body_bytes: int = strict_json.BODY_BYTES_MAX
    body_timeout_ms: int = strict_json.BODY_TIMEOUT_MS


@frozen
class JsonBody:
    raw: bytes
    value: Any
    """The value of the body; None if there was no body."""

    def replay(self, receive: Receive) -> Receive:
        """Gives the body to the application."""
        return replaying(self.raw, receive)


async def checked_body(scope: Scope, receive: Receive, met: Met, limits: BodyLimits) -> JsonBody:
    """Raises Refused `unsupported-media-type`, `body-too-large`, `malformed-json`,
    `invalid-request` (a body where there is none to be), Unavailable `request-timeout`."""
    if scope["method"] in _WITHOUT:
        return JsonBody(b"", None)
    headers = dict(scope["headers"])
    if met.takes_body:
        _check_media(headers, needed=met.needs_body)
    limit = _limit_of(met, limits)
    declared = headers.get(b"content-length", b"0")
    if declared.isdigit() and int(declared[:20]) > limit:
        raise Refused("body-too-large", limit_bytes=limit)
    raw = await read_body(receive, limit, limits.body_timeout_ms)
    if not raw and not met.needs_body:
        return JsonBody(b"", None)
    value = await parsed(raw)
    if not met.takes_body and value != {}:
        raise Refused("invalid-request", expected="no body")
    return JsonBody(raw, value)


def _limit_of(met: Met, limits: BodyLimits) -> int:
    if met.template.endswith("/heartbeat"):
        return HEARTBEAT_BYTES_MAX
    return _LARGE.get(met.template, limits.body_bytes)


def _check_media(headers: dict[bytes, bytes], *, needed: bool) -> None:
    coding = headers.get(b"content-encoding", b"identity").strip().lower()
    if coding != b"identity":
        raise Refused(
            "unsupported-media-type", found=coding.decode("latin-1"), expected="no encoding"
        )
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    empty = headers.get(b"content-length") == b"0" or not (
        headers.keys() & {b"content-length", b"transfer-encoding"}
    )
    if media != JSON and (needed or media or not empty):
        media_type = media.decode("latin-1") or "of no declared type"
        raise Refused("unsupported-media-type", found=media_type, expected=JSON.decode())
