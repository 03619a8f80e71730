"""Closed loops of HTTP requests, by so little code that the server is what is measured."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

from benchmarks.service.stub_node import content_length

MakeRequest = Callable[[int], bytes]
"""The bytes of request number n, head and body."""


@dataclass(frozen=True, slots=True)
class Load:
    """The result of one closed loop of several clients."""

    seconds: float
    latencies_ms: Sequence[float]

    @property
    def per_second(self) -> float:
        return len(self.latencies_ms) / self.seconds


def request_of(method: str, path: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


@dataclass(slots=True)
class Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes, status: bytes) -> bytes:
        """The body of the answer, which must have that status."""
        found, body = await self.exchange(request)
        assert found == status, (found, body)
        return body

    async def exchange(self, request: bytes) -> tuple[bytes, bytes]:
        """Status and body of the answer."""
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        body = await self.reader.readexactly(content_length(head))
        return head.split(b" ", 2)[1], body


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


Ask = Callable[[int], Awaitable[None]]
"""Sends request number n and reads its answer."""
Connect = Callable[[], AbstractAsyncContextManager[Ask]]
"""Opens the connection of one client."""


async def closed_loop(
    url: str, make: MakeRequest, numbers: range, *, clients: int, status: bytes
) -> Load:
    """Every request of *numbers* once; each client sends its next when the last is answered."""
    return await closed(over_http(url, make, status), numbers, clients=clients)


def over_http(url: str, make: MakeRequest, status: bytes) -> Connect:
    """Opens connections for `closed`, each to *url*; every answer must have that status."""

    @asynccontextmanager
    async def http() -> AsyncIterator[Ask]:
        async with connected(url) as connection:

            async def ask(number: int) -> None:
                await connection.ask(make(number), status)

            yield ask

    return http


async def closed(connect: Connect, numbers: range, *, clients: int, warm: int = 0) -> Load:
    """As `closed_loop`, over any protocol. All connections are opened, and the first *warm* of the
    numbers are done, before the clock starts."""
    waiting = iter(numbers)
    async with AsyncExitStack() as stack:
        asks = [await stack.enter_async_context(connect()) for _ in range(clients)]
        await _timed(asks, islice(waiting, warm))
        return await _timed(asks, waiting)


async def _timed(asks: Sequence[Ask], waiting: Iterator[int]) -> Load:
    """The numbers that wait, shared by the clients."""
    loop = asyncio.get_running_loop()
    latencies = list[float]()

    async def client(ask: Ask) -> None:
        for number in waiting:
            before = loop.time()
            await ask(number)
            latencies.append((loop.time() - before) * 1000)

    began = loop.time()
    async with asyncio.TaskGroup() as tasks:
        for ask in asks:
            tasks.create_task(client(ask))
    return Load(loop.time() - began, latencies)
