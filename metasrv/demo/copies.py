"""The act of the copies: every region gets two more, and a node dies with its disk.

Copies are made while a writer goes on. Then nothing is moved and no Spark runs: a copy leads, which
has every acknowledged row. The node comes back empty, and its copies are made again.
"""

import asyncio
import shutil
from dataclasses import dataclass

from metasrv.demo.data import SCHEMA
from metasrv.demo.page import Bars, DemoFailed, DemoPage
from metasrv.demo.writer import Writer
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.rows import TableChecksum
from metasrv_base.clock import Clock
from metasrv_base.wire.api.cluster import RegionBody

COPIES = 3
VICTIM = "dn-3"
SIGHTINGS_SQL = f"""
CREATE TABLE nyc.sightings (id BIGINT PRIMARY KEY, note TEXT)
    PARTITION BY HASH (id) PARTITIONS 6 WITH (replicas = {COPIES});
"""
WRITTEN = 100
LOOK_MS = 200
IN_SYNC_S_MAX = 240.0
WRITABLE_S_MAX = 60.0
WRITABLE_MS_MAX = 30_000  # 5 s on a machine with nothing else to do


@dataclass(slots=True)
class CopiesAct:
    """Raises DemoFailed if a promise is not kept."""

    page: DemoPage
    cluster: Playground
    client: AsyncClient
    clock: Clock
    bars: Bars

    async def tell(self) -> None:
        self.page.chapter("Every region gets two more copies, and a node dies with its disk")
        names = sorted({region.table for region in await self.client.regions.list()})
        with self.page.step(f"table sightings with {COPIES} copies, two of which take a write"):
            await self.client.sql(SIGHTINGS_SQL)
        writer = Writer(self.client.table(f"{SCHEMA}.sightings"), self.clock)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(writer.run())
            await self._made(names)
            await writer.written(WRITTEN, within_s=WRITABLE_S_MAX)
            sums = {name: await self._checksum(name) for name in names}
            writer.longest_wait_ms = 0
            await self._killed(writer)
            for name, before in sums.items():
                self._must_be_same(name, before, await self._checksum(name))
            await self._made_again()
            writer.stop()
        await self._nothing_lost(writer)

    async def _made(self, names: list[str]) -> None:
        begun = self.clock.mono_ms()
        for name in names:
            await self.client.sql(f"ALTER TABLE {name} SET REPLICAS {COPIES}")
        made = await self._all_in_sync(f"{len(names)} tables with {COPIES} copies")
        took = max(1, self.clock.mono_ms() - begun)
        self.page.figure("copies made beside a writer", f"{made} in {took / 1000:.1f} s")

    async def _all_in_sync(self, what: str) -> int:
        """Waits until every region has all its copies in sync; returns how many copies there are
        beside the leaders'."""
        until = self.clock.mono_ms() + int(IN_SYNC_S_MAX * 1000)
        with self.bars("copies") as shown:
            while self.clock.mono_ms() < until:
                regions = await self.client.regions.list()
                done = sum(map(_in_sync, regions))
                total = len(regions) * (COPIES - 1)
                shown.tell("copies in sync", done, total)
                if done == total:
                    self.page.say(f"[green]✓[/green] {what}: {done} copies are in sync")
                    return done
                await self.clock.sleep_ms(LOOK_MS)
        raise DemoFailed(f"{done} of {total} copies are in sync after {IN_SYNC_S_MAX:.0f} s")

    async def _killed(self, writer: Writer) -> None:
        led = await self.client.regions.list(VICTIM)
        await self.cluster.kill(VICTIM)
        await asyncio.to_thread(shutil.rmtree, self.cluster.datanode_roots[VICTIM])
        self.page.say(
            f"[red]kill -9[/red] {VICTIM}, which leads {len(led)} regions; its disk is gone"
        )
        await writer.written(WRITTEN, within_s=WRITABLE_S_MAX)
        waited = writer.longest_wait_ms
        self.page.must(
            waited <= WRITABLE_MS_MAX,
            f"copies lead: the writer waited {waited / 1000:.1f} s at most, and nothing was moved",
        )
        self.page.figure(
            "killed with its disk, longest wait of the writer", f"{waited / 1000:.1f} s"
        )

    async def _made_again(self) -> None:
        begun = self.clock.mono_ms()
        await self.cluster.restart(VICTIM)
        self.page.say(f"{VICTIM} comes back with an empty disk")
        made = await self._all_in_sync("everything that was lost with it is made again")
        took = (self.clock.mono_ms() - begun) / 1000
        self.page.figure("all copies in sync again", f"{made} after {took:.1f} s")

    async def _nothing_lost(self, writer: Writer) -> None:
        rows = await self.client.table(f"{SCHEMA}.sightings").to_arrow(["id"])
        present = set(rows.column("id").to_pylist())
        lost = writer.acknowledged - present
        self.page.must(not lost, f"all {len(writer.acknowledged):,} acknowledged rows are there")
        self.page.figure("rows acknowledged, lost with a disk", f"{len(lost)} of {len(present):,}")

    async def _checksum(self, name: str) -> TableChecksum:
        return await self.client.table(name).checksum()

    def _must_be_same(self, name: str, before: TableChecksum, after: TableChecksum) -> None:
        same = (before.rows, before.checksum) == (after.rows, after.checksum)
        self.page.must(same, f"{name}: {after.rows:,} rows, checksum {after.checksum} as before")


def _in_sync(region: RegionBody) -> int:
    """The copies in sync beside the leader's."""
    return sum(copy.role == "in-sync" for copy in region.copies)
