"""A tiny real HTTP server whose answers are scripted; it can also be silent, or hang up."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

HANG_UP = "hang up"  # close the connection without an answer
SILENCE = "silence"  # read the request and never answer


@dataclass(frozen=True, slots=True)
class Reply:
    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        head = {"content-length": str(len(body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {text}" for name, text in head.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@dataclass(slots=True)
class Asked:
    """A request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class HttpServer:
    """`script` answers each request in turn; the last answer is repeated. A method that is in
    *always* is answered so every time."""

    script: list[Reply | str]
    always: Mapping[str, Reply | str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {
            name.lower(): text.strip()
            for name, _, text in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.asked.append(Asked(method, target, headers, body))
        in_turn = self.script[min(len(self.asked), len(self.script)) - 1]
        reply = self.always.get(method, in_turn)
        if isinstance(reply, Reply):
            writer.write(reply.encoded())
            await writer.drain()
            return True
        if reply == SILENCE:
            await reader.read()  # until the client gives up
        return False


@asynccontextmanager
async def serving(*script: Reply | str, **always: Reply | str) -> AsyncIterator[HttpServer]:
    server = HttpServer(list(script), always)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"http://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listening.close()
