"""A datanode with regions of three copies, killed with its disk or stopped, under writers and
readers."""

import asyncio
import json
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from metasrv.sdk.client import AsyncClient
from metasrv.sdk.rows.binding import Bound
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError
from metasrv_base.rows.nodes import NodePools
from metasrv_base.schema.instants import parse_instant
from metasrv_base.wire.node.batches import ChecksumRequest, ChecksumResult
from tests.process.harness.copies.equal_copies import unequal_copies
from tests.process.harness.node_outages import acknowledged_again, rows_of, writers_of, writing
from tests.process.harness.probes import Seen, must
from tests.process.harness.rig import Rig, running, table_spec
from tests.process.harness.writer import Writer, wrong_rows

COPIES, NODES, ZONES = 3, 4, 3
READ_MS = 5_000
PAUSE_MS = 20
STOPPED_MS = 10_000
READS_MIN = 20


@asynccontextmanager
async def copied(folder: Path, regions: int) -> AsyncIterator[tuple[Rig, AsyncClient]]:
    """A cluster of default settings with four datanodes in three zones, and table t, each region
    with a copy in each zone."""
    async with running(folder, datanodes=NODES, zones=ZONES, flags={}) as rig, rig.client() as db:
        await db.tables.create({**table_spec("t", regions), "replicas": COPIES})
        yield rig, db


async def leader_of_first(db: AsyncClient, name: str = "t") -> str:
    leader = (await db.tables.route(name)).regions[0].leader
    assert leader is not None
    return leader


async def copies_killed(folder: Path) -> Seen:
    """A node that leads and follows is killed and its root removed: no acknowledged row is lost."""
    async with copied(folder, regions=4) as (rig, db):
        writers = await writers_of(db, "t")
        async with writing(writers):
            await acknowledged_again(rig, writers)
            dead = await leader_of_first(db)
            killed_ms = rig.clock.wall_ms()
            await rig.kill(dead)
            shutil.rmtree(rig.playground.datanode_roots[dead])
            writable_ms = await acknowledged_again(rig, writers)
            told = stages(rig, killed_ms)
        rows = await rows_of(db, "t")
        unequal = await unequal_copies(rig, db, "t")
    numbers = {"stages": told, "writable_ms": writable_ms, "rows": len(rows)}
    kept = must(a_copy_was_promoted="promoted" in told, a_dead_copy_left="left" in told)
    return Seen(numbers, (*kept, *wrong_rows(rows, writers), *unequal))


def stages(rig: Rig, since_ms: int) -> dict[str, int]:
    """When each stage of the failover was last seen in the logs, in ms since *since_ms*."""
    found: dict[str, int] = {}
    for line in events(rig, "m-1"):
        if line.get("event") == "silent_leader_judged" and line.get("verdict") == "promote":
            _note(found, "judged", line, since_ms)
        if line.get("event") == "procedure_ended" and line.get("kind") == "failover_table":
            _note(found, "promoted", line, since_ms)
    for node in rig.playground.datanode_urls:
        for line in events(rig, node):
            if line.get("event") == "copy_change_answered" and line.get("change") == "leave":
                _note(found, "left", line, since_ms)
    return found


def events(rig: Rig, id: str) -> Iterator[dict[str, Any]]:
    """The events in the log of a program."""
    for line in rig.log_of(id).splitlines():
        if line.startswith("{") and '"event"' in line:
            yield json.loads(line)


def _note(found: dict[str, int], stage: str, line: Mapping[str, Any], since_ms: int) -> None:
    after_ms = parse_instant(line["timestamp"], "us") // 1_000 - since_ms
    if after_ms >= 0:
        found[stage] = max(found.get(stage, 0), after_ms)


# Stopped ---------------------------------------------------------------------------------------


@dataclass
class CountingReader:
    """Reads the number of rows again and again. Rows are only added, so a read that is answered has
    all that were acknowledged before it began, and never fewer than an earlier one."""

    read: Callable[[], Any]
    acknowledged: Callable[[], int]
    counts: list[int] = field(default_factory=list)
    """The answers, in the order in which the reads began."""
    refused: int = 0
    stale: list[str] = field(default_factory=list)
    is_over: bool = False

    async def run(self) -> None:
        clock = SystemClock()
        while not self.is_over:
            await self.once()
            await clock.sleep_ms(PAUSE_MS)

    async def once(self) -> None:
        least = max([self.acknowledged(), *self.counts[-1:]])
        try:
            count = await self.read()
        except MetaError:
            self.refused += 1
            return
        if count < least:
            self.stale.append(f"{count} rows, after {least}")
        self.counts.append(count)


async def stopped_leader_read(folder: Path) -> Seen:
    """A leader is stopped for 10 s while readers ask it, and another leads meanwhile. Its answers,
    also to what waited in its socket, have every row that was acknowledged before."""
    async with copied(folder, regions=1) as (rig, db), asyncio.TaskGroup() as tasks:
        writer = Writer(db.table("t"), statement_ms=60_000)
        await writer.write()
        bound = await db.table("t").binding.get()
        former = bound.regions[0].leader
        assert former is not None
        direct = CountingReader(lambda: count_at(bound), lambda: writer.count("ok"))
        through = CountingReader(lambda: count_of(db), lambda: writer.count("ok"))
        readers = (direct, through)
        running_readers = [tasks.create_task(reader.run()) for reader in readers]
        async with writing([writer]):
            await rig.until(lambda: has_read(readers))
            before = len(direct.counts)
            await rig.kill(former, signal.SIGSTOP)
            stopped_ms = rig.clock.mono_ms()
            late = [tasks.create_task(direct.once()) for _ in range(4)]
            await rig.until(lambda: leads_elsewhere(db, former))
            writable_ms = await acknowledged_again(rig, [writer])
            await rig.clock.sleep_ms(max(0, stopped_ms + STOPPED_MS - rig.clock.mono_ms()))
            await rig.kill(former, signal.SIGCONT)
            await asyncio.gather(*late)
            refused = direct.refused
            await rig.until(lambda: was_refused(direct, refused + READS_MIN))
        for reader in readers:
            reader.is_over = True
        await asyncio.gather(*running_readers)
        rows = await rows_of(db, "t")
        unequal = await unequal_copies(rig, db, "t")
        checked = await rig.check()
    numbers = {
        "writable_ms": writable_ms,
        "reads at the former leader": before,
        "refused there": direct.refused,
        "answered after it was stopped": len(direct.counts) - before,
        "reads by the frontend": len(through.counts),
    }
    wrong = (*direct.stale, *through.stale, *wrong_rows(rows, [writer]), *unequal, *checked)
    return Seen(numbers, wrong)


async def count_at(bound: Bound) -> int:
    """The rows of the first region as the leader of *bound* counts them, whoever leads by now."""
    wanted = ChecksumRequest(
        table_id=bound.layout.table_id,
        schema_version=bound.layout.schema_version,
        epoch=bound.regions[0].epoch,
    )
    nodes = NodePools()
    try:
        found = await nodes.read(bound.regions[0], "checksum", wanted, READ_MS, ChecksumResult)
    finally:
        await nodes.close()
    return found.rows


async def count_of(db: AsyncClient) -> int:
    return len(await rows_of(db, "t"))


async def has_read(readers: tuple[CountingReader, ...]) -> bool:
    return all(len(reader.counts) >= READS_MIN for reader in readers)


async def was_refused(reader: CountingReader, times: int) -> bool:
    return reader.refused >= times


async def leads_elsewhere(db: AsyncClient, former: str) -> bool:
    region = (await db.tables.route("t")).regions[0]
    return region.leader != former and region.state == "open"
