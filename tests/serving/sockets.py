"""A guarded server on a real socket, and bytes sent to it as they are."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import uvicorn

from metasrv_base.wire.http.asgi import App, Message, Receive, Scope, Send, read_body
from serving.guard import Bounds, GuardedConfig

PATIENCE_S = 120.0


@dataclass(frozen=True)
class Heard:
    """Everything the server said on one connection until it closed it."""

    raw: bytes

    @property
    def statuses(self) -> list[int]:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", self.raw)]

    @property
    def json(self) -> Any:
        """The body of the last answer, decoded."""
        return orjson.loads(self.raw.rpartition(b"\r\n\r\n")[2])


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers how many bytes of body it was given, and closes when asked to by `/last`."""
    body = b"" if scope["path"] == "/unread" else await read_body(receive, 1 << 30)
    answer = b"%d" % len(body)
    headers = [(b"content-length", b"%d" % len(answer))]
    if scope["path"] == "/last":
        headers.append((b"connection", b"close"))
    start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": answer})


@asynccontextmanager
async def serving(bounds: Bounds, app: App = echo) -> AsyncIterator[int]:
    """The port of a server with *bounds*."""
    listening = socket.create_server(("127.0.0.1", 0))
    port: int = listening.getsockname()[1]
    config = GuardedConfig(app, bounds, log_config=None, lifespan="off", ws="none")
    config.load()
    state = uvicorn.server.ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: config.http_protocol_class(  # type: ignore[call-arg]
            config=config, server_state=state, app_state={}
        ),
        sock=listening,
    )
    yield port
    server.close()
    for connection in list(state.connections):
        connection.shutdown()
    await server.wait_closed()


async def talk(port: int, *parts: bytes) -> Heard:
    """Sends *parts* one by one, then listens until the server hangs up."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            return Heard(await reader.read(-1))
        finally:
            writer.close()


def request(*lines: str, body: bytes = b"") -> bytes:
    return "\r\n".join((*lines, "", "")).encode("latin-1") + body
