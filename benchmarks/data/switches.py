"""`benchmarks.data.switches`: the leader of a region with copies is switched under writers.

One etcd, one metasrv, three datanodes, one frontend, one region with three copies. Writers of one
row each first find the rate at which the machine acknowledges them, then write at half of it, while
the leader is switched again and again. The gap of a switch is the longest that a write took which
was under way at any time between its submission and a second behind its end, however long it took:
gaps are looked for when the writers have ended. No write may fail, and no row may be lost.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import head, line
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.connections import connect_async
from metasrv_base.clock import SystemClock
from metasrv_base.wire.api.tables import ColumnSpec, TableSpec

NAME = "main.public.switched"
SPEC = TableSpec(
    name="switched",
    columns=(
        ColumnSpec(name="id", type="int64", nullable=False),
        ColumnSpec(name="text", type="string"),
    ),
    primary_key=("id",),
    replicas=3,
)
TEXT = "x" * 200
PATIENCE_MS = 60_000
RATE_S = 5
"""The time for which writers run at full speed, and before the first switch at half of it."""
SETTLE_MS = 1_000
"""Writes that begin so long behind the end of a switch are part of its gap."""
QUIET_MS = 2_500
"""Between two switches: promises to the leader before the last one have ended."""


@dataclass(frozen=True, slots=True)
class Write:
    """The write of one row, which was acknowledged."""

    began_ms: int
    took_ms: int


@dataclass(slots=True)
class Load:
    """Writers of one row at a time."""

    client: AsyncClient
    clock: SystemClock
    interval_ms: float = 0.0
    """The time from one write of a writer to its next; 0: it does not rest."""
    writes: list[Write] = field(default_factory=list)
    next_id: int = 0
    is_over: bool = False

    async def run(self, writers: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(writers):
                tasks.create_task(self._write())

    async def _write(self) -> None:
        table = self.client.table(NAME)
        due_ms = float(self.clock.mono_ms())
        while not self.is_over:
            self.next_id += 1
            began = self.clock.mono_ms()
            await table.insert([{"id": self.next_id, "text": TEXT}])
            now = self.clock.mono_ms()
            self.writes.append(Write(began, now - began))
            due_ms = max(due_ms + self.interval_ms, now - self.interval_ms)
            await self.clock.sleep_ms(max(0, int(due_ms - now)))


@dataclass(frozen=True, slots=True)
class Switch:
    """The times of one switch, in ms of the clock of the writes."""

    began_ms: int
    """Its submission."""
    ended_ms: int

    def gap_ms(self, writes: Iterable[Write]) -> int:
        """Returns the longest time that a write took which was under way beside this switch.

        *writes* are those of the whole run: one that is still in flight is the gap itself.
        """
        until_ms = self.ended_ms + SETTLE_MS
        beside = [
            write.took_ms
            for write in writes
            if write.began_ms <= until_ms and write.began_ms + write.took_ms >= self.began_ms
        ]
        assert beside, "nothing was written beside a switch"
        return max(beside)


async def measure(switches: int, writers: int) -> bool:
    """Returns whether every row that was acknowledged is there."""
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(data_dir=Path(folder), frontends=1)
        async with Playground(settings) as up:
            urls = list(up.metasrv_urls)
            async with connect_async(urls, patience_ms=PATIENCE_MS) as client:
                await client.tables.create(SPEC, "main.public")
                clock = SystemClock()
                warm = Load(client, clock)
                await _for_a_while(warm, writers)
                full = Load(client, clock, next_id=warm.next_id)
                await _for_a_while(full, writers)
                rate = len(full.writes) / RATE_S
                half = Load(client, clock, 2_000 * writers / rate, next_id=full.next_id)
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(half.run(writers))
                    await clock.sleep_ms(RATE_S * 1_000)
                    calm = [write.took_ms for write in half.writes]
                    done = [await one_switch(client, clock) for _ in range(switches)]
                    half.is_over = True
                rows = await client.table(NAME).count()
    head(f"python -m benchmarks.data.switches --switches {switches} --writers {writers}", switches)
    gaps = [switch.gap_ms(half.writes) for switch in done]
    line("acknowledged at full speed, rows/s", [rate], "rows/s")
    line("write at half load p99, no switch", [quantile(calm, 0.99)], "ms")
    line("gap of a switch", gaps, "ms")
    line("gap of a switch p99, ms", [quantile(gaps, 0.99)], "ms")
    took = [switch.ended_ms - switch.began_ms for switch in done]
    line("switch, from its submission to its end", took, "ms")
    written = half.next_id
    print(f"rows written {written}, counted {rows}, {'none' if rows == written else 'SOME'} lost")
    return rows == written


async def _for_a_while(load: Load, writers: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(load.run(writers))
        await load.clock.sleep_ms(RATE_S * 1_000)
        load.is_over = True


async def one_switch(client: AsyncClient, clock: SystemClock) -> Switch:
    """Switches the leader, and waits until the next switch may begin."""
    region = (await client.tables.route(NAME)).regions[0]
    began = clock.mono_ms()
    started = await client.regions.switch_leader(region.region_id, "benchmark")
    ended = await client.procedures.wait(started.id, wait_s=60)
    over = clock.mono_ms()
    assert ended.state == "succeeded", ended.error
    await clock.sleep_ms(SETTLE_MS + QUIET_MS)
    return Switch(began, over)


def quantile(values: list[int], part: float) -> float:
    ordered = sorted(values)
    return float(ordered[min(len(ordered) - 1, int(part * len(ordered)))])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--switches", type=int, default=50)
    parser.add_argument("--writers", type=int, default=8)
    options = parser.parse_args()
    sys.exit(0 if asyncio.run(measure(options.switches, options.writers)) else 1)
