"""`benchmarks.catalog.heartbeats`: what heartbeats of many idle regions cost one metasrv.

A store that is filled before, one metasrv on it, and simulated nodes that lead the tables, one
region each. Every node reports all of its regions until it has been granted all of them; then it
beats again and again, first without a change, then with one region of a hundred changed each time,
and at last as a node of format 2, which reports all of its regions each time. Processor time is
that of the server, by proc(5); the cores are for beats at the pace of the nodes, 2 s.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.catalog.filled_snapshot import write_snapshot
from benchmarks.catalog.large import FIRST_EPOCH, Rig, Served, served
from benchmarks.report import head, line, resident_mib
from benchmarks.service.creates import cpu_ms
from benchmarks.service.filled import NO_NUMBER, Filling, fill
from benchmarks.service.many_tables import QUOTA_BYTES
from benchmarks.service.stub_node import Stub
from dataplane.datanode.membership.reports import NodeReports
from keys.commit.sequence import FIRST
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv_base.clock import SystemClock
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.ids import TableId, region_id
from metasrv_base.wire.http.client import HttpClient
from metasrv_base.wire.node.nodes import (
    KEEPS_REPORTS,
    HeartbeatAnswer,
    RegionColumns,
    RegionStat,
    RegisterAnswer,
)

ADDRESS = "http://127.0.0.1:1"
AT_ONCE = 8
ROUNDS = 5
CHANGED = 100
"""One region of so many has other numbers than before."""
PACE_S = 2


class IdleNode(Stub):
    """A node that leads its share of the filled tables, of which hardly one changes."""

    def __init__(self, filling: Filling, number: int) -> None:
        view = filling.views[number]
        super().__init__(view.node_id, Path(view.root))
        led = range((number - NO_NUMBER) % filling.nodes, filling.tables, filling.nodes)
        self.stats = [
            RegionStat(
                region_id=str(region_id(TableId(FIRST["table_id"] + table), 0)),
                epoch=FIRST_EPOCH,
                state="open",
                rows=1_234_567,
                bytes=123_456_789,
                wal_bytes=0,
                files=12,
                version=1_700_000_000_000_000_000,
                root=f"{view.root}/regions/{table}",
            )
            for table in led
        ]
        self.granted = 0
        self._reports = NodeReports()
        self._joined: RegisterAnswer | None = None

    async def register(self, client: HttpClient) -> None:
        answer = await client.request(
            "POST",
            f"/internal/v1/nodes/{self.node_id}/register",
            json=self._registration(ADDRESS),
            deadline_ms=60_000,
            repeatable=True,
        )
        self._joined = answer.body(RegisterAnswer)

    async def idle(self, client: HttpClient) -> None:
        self._sequence += 1
        facts = self._reports.facts(self._sequence, self.stats)
        answer = await self._sent(client, facts)
        self.granted = len(self._reports.answered(answer))

    async def changing(self, client: HttpClient) -> None:
        for number in range(0, len(self.stats), CHANGED):
            rows = self.stats[number].rows + 1
            self.stats[number] = self.stats[number].model_copy(update={"rows": rows})
        await self.idle(client)

    async def whole(self, client: HttpClient) -> None:
        """As format 2 has it."""
        self._sequence += 1
        facts = {"regions": RegionColumns.of(self.stats), "format": KEEPS_REPORTS - 1}
        answer = await self._sent(client, facts)
        self.granted = len(answer.grants)

    async def _sent(self, client: HttpClient, facts: object) -> HeartbeatAnswer:
        assert self._joined is not None
        assert isinstance(facts, dict)
        request = self._heartbeat(self._joined, ADDRESS).model_copy(update=facts)
        answer = await client.request(
            "PUT",
            f"/internal/v1/nodes/{self.node_id}/heartbeat",
            json=request,
            deadline_ms=60_000,
        )
        return answer.body(HeartbeatAnswer)


async def measure(filling: Filling, folder: Path) -> None:
    os.environ["ETCD_QUOTA_BACKEND_BYTES"] = str(QUOTA_BYTES)
    store = PlaygroundOptions(data_dir=folder / "store", metasrvs=0, datanodes=0)
    async with Playground(store) as up:
        etcd = up.etcd_urls[0]
        await fill(etcd.removeprefix("http://"), filling, partial(write_snapshot, filling))
        rig = Rig(filling, etcd, folder, False, False, 0, SystemClock())
        async with served(rig, "server") as server:
            off = {"enabled": True, "reason": "the nodes are simulated"}
            starting = (202, 404, 503, 504)
            await server.until(
                "PUT", "/v1/cluster/maintenance", off, status=200, waits_for=starting
            )
            await compared(server)


async def compared(server: Served) -> None:
    filling = server.rig.filling
    nodes = [IdleNode(filling, number) for number in range(filling.nodes)]
    regions = len(nodes[0].stats)
    empty_mib = resident_mib(server.pid)
    async with HttpClient([server.url]) as client:
        await fan_out([partial(node.register, client) for node in nodes], at_once=AT_ONCE)
        took = []
        while any(node.granted < len(node.stats) for node in nodes):
            took += await costs(server, nodes, IdleNode.idle, client, rounds=1)
        print(f"{len(nodes)} nodes of {regions} regions; first leases of all: {sum(took):.0f} us")
        idle = await costs(server, nodes, IdleNode.idle, client)
        changing = await costs(server, nodes, IdleNode.changing, client)
        whole = await costs(server, nodes, IdleNode.whole, client, rounds=2)
    line("heartbeat, nothing new, us of processor", idle, "us")
    line(f"heartbeat, 1 region of {CHANGED} changed, us of processor", changing, "us")
    line("heartbeat, all regions, us of processor", whole, "us")
    line("nothing new / all regions", [min(idle) / min(whole)], "", 3)
    line("cores for 1,000 such nodes, nothing new", [each * 1e-3 / PACE_S for each in idle], "", 2)
    line("memory for each region, bytes", [memory(server, nodes, empty_mib)], "B")


async def costs(
    server: Served,
    nodes: Sequence[IdleNode],
    beat: Callable[[IdleNode, HttpClient], Awaitable[None]],
    client: HttpClient,
    rounds: int = ROUNDS,
) -> list[float]:
    """Returns the server's processor time for one heartbeat, in us, of each round."""
    taken = []
    for _ in range(rounds):
        before = cpu_ms(server.pid)
        await fan_out([partial(beat, node, client) for node in nodes], at_once=AT_ONCE)
        taken.append((cpu_ms(server.pid) - before) * 1000 / len(nodes))
    return taken


def memory(server: Served, nodes: Sequence[IdleNode], empty_mib: float) -> float:
    grown = (resident_mib(server.pid) - empty_mib) * (1 << 20)
    return grown / sum(len(node.stats) for node in nodes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--regions", type=int, default=1_000, help="of each node")
    asked = parser.parse_args()
    head("benchmarks.catalog.heartbeats", ROUNDS)
    many = Filling(asked.nodes * asked.regions, regions=1, nodes=asked.nodes, has_log=False)
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as root:
        asyncio.run(measure(many, Path(root)))
    sys.exit(0)
