"""Links between etcd's members, through a relay before each: any member can be cut off.

Its clients still reach it. Nothing is lost or reset while it is cut off, as on a network that is
parted: what is under way waits. Members are told apart by the header `X-Server-From` that etcd
sends with the first request of each connection (rafthttp).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

SENDER = re.compile(rb"(?i)\r\nx-server-from: *([0-9a-f]+)\r\n")
CHUNK_BYTES = 1 << 16


class Links:
    """`urls`: what each member is told of the others, in order. Use `opened`."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.ids: list[str] = []
        """Ids of the members, in order, in hexadecimal; set once they serve."""
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._away = ""

    def cut_off(self, number: int) -> None:
        """Nobody hears this member any more, nor does it hear anybody."""
        self._away = self.ids[number]
        self._is_whole.clear()

    def heal(self) -> None:
        self._away = ""
        self._is_whole.set()

    async def relay(
        self, number: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection to member *number*, which listens at *port*."""
        onward: asyncio.StreamWriter | None = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = SENDER.search(head)
            ends = (number, found[1].decode() if found else "")
            await self._passes(ends)
            answers, onward = await asyncio.open_connection("127.0.0.1", port)
            onward.write(head)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pump(ends, reader, onward))
                tasks.create_task(self._pump(ends, answers, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # one of the two has gone: that is told to the other by what follows
        finally:
            for one in (writer, onward):
                if one is not None:
                    one.close()

    async def _pump(
        self, ends: tuple[int, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            await self._passes(ends)
            writer.write(chunk)
            await writer.drain()
        raise ConnectionResetError

    async def _passes(self, ends: tuple[int, str]) -> None:
        number, sender = ends
        while self._away and self._away in (sender, self.ids[number]):
            await self._is_whole.wait()


@asynccontextmanager
async def opened(ports: Sequence[int]) -> AsyncIterator[Links]:
    """*ports*: where the members listen for each other."""
    links = Links()
    async with AsyncExitStack() as stack:
        for number, behind in enumerate(ports):
            relay = partial(links.relay, number, behind)
            server = await asyncio.start_server(relay, "127.0.0.1", 0)
            stack.callback(server.close)
            port = server.sockets[0].getsockname()[1]
            links.urls.append(f"http://127.0.0.1:{port}")
        yield links
