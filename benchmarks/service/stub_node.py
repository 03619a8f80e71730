"""`benchmarks.service.stub_node METASRV...`: a node that does nothing, and says so at once.

It registers, answers every order with "done", and reports its regions as a node does. So what is
measured over it is the control plane alone. `GET /counts` says how many requests and orders it was
given.
"""

import argparse
import asyncio
import re
from pathlib import Path
from uuid import uuid4

import orjson

from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.nodes import (
    HeartbeatRequest,
    NodeResources,
    RegionColumns,
    RegionStat,
    RegisterAnswer,
    RegisterRequest,
)

VERSION = "0.1.0"
DEADLINE_MS = 20_000  # a report of 50,000 regions beside failovers
GIB = 1 << 30
RESOURCES = NodeResources(
    cpu_cores=8,
    memory_bytes=64 * GIB,
    memory_free_bytes=64 * GIB,
    disk_bytes=1_000 * GIB,
    disk_free_bytes=1_000 * GIB,
)
HEAD_MAX = 64 << 10
BORROWED = re.compile(rb"GET /node/v1/regions/([0-9]+)/borrowed")


class Stub:
    """One node."""

    def __init__(self, node_id: str, root: Path) -> None:
        self.node_id = node_id
        self.root = root
        self.incarnation = str(uuid4())
        self.requests = 0
        self.orders = 0
        self.epochs: dict[str, int] = {}
        """By region."""
        self._sequence = 0
        """The number of the last heartbeat: it goes on over registrations of one incarnation."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection: requests one after the other, until the other side closes it."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = content_length(head)
                body = await reader.readexactly(length) if length else b""
                answer = orjson.dumps(self._answer(head, body))
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                    b"content-length: %d\r\n\r\n%b" % (len(answer), answer)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, head: bytes, body: bytes) -> object:
        if found := BORROWED.match(head):
            return self._borrowed(found[1].decode())
        if head.startswith(b"GET"):
            return {"requests": self.requests, "orders": self.orders}
        orders = orjson.loads(body)["orders"]
        self.requests += 1
        self.orders += len(orders)
        self.epochs.update((one["region_id"], one["epoch"]) for one in orders)
        results = [{"number": one["number"], "region_id": one["region_id"]} for one in orders]
        return {"results": results}

    def _borrowed(self, region: str) -> object:
        """A region that borrows nothing."""
        facts = {"region_id": region, "epoch": self.epochs.get(region, 0), "root": str(self.root)}
        return {**facts, "columns": [], "marks": [], "files": [], "segments": []}

    async def beat(self, urls: list[str], address: str) -> None:
        """Registers and sends heartbeats for ever."""
        async with HttpClient(urls) as client:
            answer = await client.request(
                "POST",
                f"/internal/v1/nodes/{self.node_id}/register",
                json=self._registration(address),
                deadline_ms=DEADLINE_MS,
                repeatable=True,
            )
            joined = answer.body(RegisterAnswer)
            while True:
                self._sequence += 1
                await client.request(
                    "PUT",
                    f"/internal/v1/nodes/{self.node_id}/heartbeat",
                    json=self._heartbeat(joined, address),
                    deadline_ms=DEADLINE_MS,
                )
                await asyncio.sleep(joined.heartbeat_ms / 1000)

    def _registration(self, address: str) -> RegisterRequest:
        return RegisterRequest(
            cluster_id=None,
            node_id=self.node_id,
            incarnation=self.incarnation,
            address=address,
            zone="default",
            root=str(self.root),
            version=VERSION,
            resources=RESOURCES,
        )

    def _heartbeat(self, joined: RegisterAnswer, address: str) -> HeartbeatRequest:
        return HeartbeatRequest(
            cluster_id=joined.cluster_id,
            node_id=self.node_id,
            incarnation=self.incarnation,
            sequence=self._sequence,
            address=address,
            zone="default",
            version=VERSION,
            term=joined.term,
            resources=RESOURCES,
            regions=RegionColumns.of(_open(region, epoch) for region, epoch in self.epochs.items()),
        )


def _open(region: str, epoch: int) -> RegionStat:
    """Returns the state of an open region without rows."""
    return RegionStat(
        region_id=region,
        epoch=epoch,
        state="open",
        rows=0,
        bytes=0,
        wal_bytes=0,
        files=0,
        version=0,
    )


def content_length(head: bytes) -> int:
    """Returns the `Content-Length` of a request's or a response's head; 0: it has none."""
    _, found, rest = head.lower().partition(b"\r\ncontent-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


async def main(urls: list[str], node_id: str, root: Path) -> None:
    stub = Stub(node_id, root)
    server = await asyncio.start_server(stub.serve, "127.0.0.1", 0, limit=HEAD_MAX)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    print(address, flush=True)
    async with server:
        await stub.beat(urls, address)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+", help="of the metasrvs")
    parser.add_argument("--node-id", default="stub-1")
    parser.add_argument("--root", type=Path, required=True)
    given = parser.parse_args()
    asyncio.run(main(given.urls, given.node_id, given.root))
