"""Requests as bytes: what no well-behaved client would send."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.types import ASGIApp, Message

JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Sent:
    """One request. `parts` of a body arrive one by one; `stalls`: the last one never does."""

    method: str = "POST"
    path: str = "/v1/catalogs/main/schemas/public/tables"
    """As it stands on the wire, escapes and query included."""
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)
    parts: Sequence[bytes] = (b"",)
    chunked: bool = False
    """Without a Content-Length."""
    stalls: bool = False


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


async def send(app: ASGIApp, sent: Sent) -> Got:
    """Returns the application's answer."""
    raw, _, query = sent.path.encode("latin-1").partition(b"?")
    headers = [(name.encode(), value.encode("latin-1")) for name, value in sent.headers.items()]
    if sent.chunked:
        headers.append((b"transfer-encoding", b"chunked"))
    elif any(sent.parts):
        headers.append((b"content-length", str(sum(map(len, sent.parts))).encode()))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": sent.method,
        "scheme": "http",
        "path": unquote(raw.decode("latin-1"), errors="replace"),
        "raw_path": raw,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("ms-1", 80),
    }
    waiting = list(sent.parts)
    got = Got(0, {}, b"")

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        part = waiting.pop(0)
        more = bool(waiting) or sent.stalls
        return {"type": "http.request", "body": part, "more_body": more}

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            got.status = message["status"]
            got.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            got.body += message.get("body", b"")

    await app(scope, receive, answer)
    return got
