"""The act of the drain: a node with the only copies of regions is emptied under a writer.

Each region gets a second copy on another node, which joins, leads by a planned switch, and stays
alone when the first one goes. No lease is waited for, and no Spark runs.
"""

import asyncio
from dataclasses import dataclass

from metasrv.demo.data import SCHEMA
from metasrv.demo.page import Bars, DemoPage
from metasrv.demo.writer import Writer
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv_base.clock import Clock
from metasrv_base.wire.api.cluster import RegionBody

DRAINED = "dn-1"
TABLE = f"{SCHEMA}.departures"
DEPARTURES_SQL = f"""
CREATE TABLE {TABLE} (id BIGINT PRIMARY KEY, note TEXT) PARTITION BY HASH (id) PARTITIONS 6;
"""
WRITTEN = 200
WRITABLE_S_MAX = 60.0
DRAINED_S_MAX = 240.0
GAP_MS_MAX = 5_000  # a failover waits 11.5 s for a lease


@dataclass(slots=True)
class DrainAct:
    """Raises DemoFailed if a promise is not kept."""

    page: DemoPage
    cluster: Playground
    client: AsyncClient
    clock: Clock
    bars: Bars

    async def tell(self) -> None:
        self.page.chapter("A node is drained without a pause, of tables with one copy")
        with self.page.step("table departures, whose regions have one copy"):
            await self.client.sql(DEPARTURES_SQL)
        writer = Writer(self.client.table(TABLE), self.clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.run())
            await writer.written(WRITTEN, within_s=WRITABLE_S_MAX)
            writer.longest_wait_ms = 0
            await self._drained(writer)
            writer.stop()
        await self._nothing_lost(writer)
        await self.client.nodes.uncordon(DRAINED)
        await self.client.tables.drop(TABLE)
        await self.client.tables.purge("the act is over", TABLE)

    async def _drained(self, writer: Writer) -> None:
        led = await self.client.regions.list(DRAINED)
        begun = self.clock.mono_ms()
        started = await self.client.nodes.drain(DRAINED, "a new kernel", dropped="keep")
        with self.bars("copies move") as shown:
            ended = await self.client.procedures.wait(
                started.id,
                wait_s=DRAINED_S_MAX,
                on_progress=lambda now: shown.tell(f"{now.kind}: {now.step}", 0, None),
            )
        took = (self.clock.mono_ms() - begun) / 1000
        await writer.written(WRITTEN, within_s=WRITABLE_S_MAX)
        waited = writer.longest_wait_ms
        regions = await self.client.regions.list()
        left = [each for each in regions if DRAINED in (each.leader, *_others(each))]
        self.page.must(not left, f"{DRAINED} is empty: {len(led)} regions moved in {took:.1f} s")
        self.page.must(
            (ended.result or {}).get("failover") is None and not writer.in_doubt,
            "no write was refused, and no region failed over",
        )
        self.page.must(waited <= GAP_MS_MAX, f"the writer waited {waited:,} ms at most")
        self.page.figure("drained of only copies, longest wait of the writer", f"{waited:,} ms")

    async def _nothing_lost(self, writer: Writer) -> None:
        rows = await self.client.table(TABLE).to_arrow(["id"])
        present = set(rows.column("id").to_pylist())
        lost = writer.acknowledged - present
        self.page.must(not lost, f"all {len(writer.acknowledged):,} acknowledged rows are there")


def _others(region: RegionBody) -> list[str]:
    """Nodes of the copies beside the leader's."""
    return [copy.node for copy in region.copies]
