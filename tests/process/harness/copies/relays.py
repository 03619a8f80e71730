"""A network between real programs that can be cut, for one pair and in one direction of requests.

Each datanode tells the others the address of a relay in front of it. A relay knows by the port of a
connection which program opened it. What a client that is cut off sends waits in the relay, as in a
network that loses packets, and arrives late when the cut ends.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.process.harness.rig import Rig

CHUNK_BYTES = 1 << 16
CONNECTED = "01"
LOOKS_MAX, LOOK_MS = 20, 10


@dataclass
class Relays:
    """Requests from a program to a node, both by id, are held while the pair is in `cuts`. The test
    itself is never cut off; another client that is no program of the rig is refused."""

    rig: Rig
    cuts: set[tuple[str, str]] = field(default_factory=set)
    held_bytes: int = 0
    """The bytes that waited at a cut."""
    used: set[tuple[str, str]] = field(default_factory=set)
    """Pairs of a program that has connected, and the node to which it did."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    async def cut(self, *pairs: tuple[str, str]) -> None:
        async with self._changed:
            self.cuts.update(pairs)

    async def are_used(self, pairs: Iterable[tuple[str, str]]) -> bool:
        """Whether each of these has found the relay: its node had another address before."""
        return self.used >= set(pairs)

    async def heal(self) -> None:
        async with self._changed:
            self.cuts.clear()
            self._changed.notify_all()

    async def listen(self, node: str) -> asyncio.Server:
        """A relay in front of *node*."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._open.add(task)
            try:
                with suppress(OSError, asyncio.CancelledError):  # cancelled by `close`, at the end
                    await self._relay(node, reader, writer)
            finally:
                await _closed(writer)
                self._open.discard(task)

        return await asyncio.start_server(accept, "127.0.0.1", 0)

    async def close(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _relay(
        self, node: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ports = writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]
        client = await self._program_at(*ports)
        if client is None:
            return
        self.used.add((client, node))
        host, port = self.rig.url(node).removeprefix("http://").split(":")
        there, to_node = await asyncio.open_connection(host, int(port))
        try:
            async with asyncio.TaskGroup() as tasks:
                back = tasks.create_task(self._pump(there, writer, None))
                await self._pump(reader, to_node, (client, node))
                to_node.write_eof()
                await back
        except* OSError:
            pass
        finally:
            await _closed(to_node)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        pair: tuple[str, str] | None,
    ) -> None:
        while data := await source.read(CHUNK_BYTES):
            if pair in self.cuts:
                self.held_bytes += len(data)
                async with self._changed:
                    await self._changed.wait_for(lambda: pair not in self.cuts)
            sink.write(data)
            await sink.drain()

    async def _program_at(self, port: int, to_port: int) -> str | None:
        """The program that is connected from the one to the other; empty: the test itself. None:
        nobody that is known. The kernel's list of sockets lacks some while others come and go, so
        it is read several times."""
        pids = {child.pid: child.program.id for child in self.rig.playground.children.values()}
        for _ in range(LOOKS_MAX):
            inode = _inode_of(port, to_port)
            for pid, name in {os.getpid(): "", **pids}.items():
                if inode and inode in _sockets_of(pid):
                    return name
            await self.rig.clock.sleep_ms(LOOK_MS)
        return None


@asynccontextmanager
async def relayed(rig: Rig) -> AsyncIterator[Relays]:
    """Starts every datanode again, behind a relay."""
    relays, servers = Relays(rig), list[asyncio.Server]()
    try:
        for node in rig.playground.datanode_urls:
            server = await relays.listen(node)
            servers.append(server)
            child = rig.playground.children[node]
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            argv = (*child.program.argv, f"--advertise={address}")
            child.program = replace(child.program, argv=argv)
            await rig.kill(node)
            await rig.restart(node)
        yield relays
    finally:
        await relays.close()
        for server in servers:
            server.close()


def both_ways(node: str, others: Iterable[str]) -> list[tuple[str, str]]:
    return [pair for other in others for pair in ((node, other), (other, node))]


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _inode_of(port: int, to_port: int) -> str:
    """The inode of the socket that is connected from the one to the other; empty: there is none.
    Another connection from the same port may have ended a moment ago."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_, inode = line.split()[:10]
        ends = [int(address.rpartition(":")[2], 16) for address in (local, remote)]
        if state == CONNECTED and ends == [port, to_port]:
            return inode
    return ""


def _sockets_of(pid: int) -> set[str]:
    found = set[str]()
    with suppress(OSError):  # it has ended
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                name = os.readlink(entry.path)
                if name.startswith("socket:["):
                    found.add(name[8:-1])
    return found
