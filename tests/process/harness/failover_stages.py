"""The leader, or Spark, killed at each stage of a failover: each time one good copy, every row.

Stages are seen in the record itself, by looking again and again. One that lasts a millisecond may
be over when the blow falls; what was hit is reported.
"""

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keys.store.kv import Event
from tests.process.harness.node_outages import rows_of
from tests.process.harness.rig import Rig
from tests.process.harness.writer import Writer, wrong_rows
from tests.processes import children_of

LEADER_STAGES = ("reroute", "await_lease", "open", "serve", "move", "adopt", "release", "discard")
SPARK = "move by Spark"
DETECT_S = 60.0
MOVE_S = 240.0


@dataclass(frozen=True, slots=True)
class Blow:
    """The stages that a blow was meant for and those that it hit."""

    stages: Sequence[str]
    hits: Sequence[str]
    """The step in which the record stood at each; empty: the failover was over."""
    healed_s: float
    wrong: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_told(self.stages, self.hits)}, whole after {self.healed_s:.1f} s"


async def blow_at(rig: Rig, name: str, *stages: str) -> Blow:
    """A node of table *name* dies; at *stages* of its failover the leader, or Spark, does too."""
    async with rig.client() as db:
        writer = Writer(db.table(name), first=await first_free(rig, name), statement_ms=60_000)
        for _ in range(3):
            await writer.write()
        dead = (await db.tables.route(name)).regions[0].leader
        assert dead is not None
        await rig.kill(dead)
        begun_ms = rig.clock.mono_ms()
        hits = await _hits_at(rig, stages)
        await writer.write()
        await rig.converged(MOVE_S)
        healed_s = (rig.clock.mono_ms() - begun_ms) / 1000
        await rig.restart(dead)
        rows = [row for row in await rows_of(db, name) if row["id"] >= writer.first]
    not_ok = [f"row {id} is {told}" for id, told in writer.told.items() if told != "ok"]
    return Blow(stages, hits, healed_s, (*wrong_rows(rows, [writer]), *not_ok))


async def killed_at(rig: Rig, stages: Sequence[str]) -> str:
    """In the failover that is to come, or has begun; what was hit."""
    return _told(stages, await _hits_at(rig, stages))


async def _hits_at(rig: Rig, stages: Sequence[str]) -> list[str]:
    return [
        await (_kill_spark(rig) if stage == SPARK else _kill_leader(rig, stage)) for stage in stages
    ]


def _told(stages: Sequence[str], hits: Sequence[str]) -> str:
    pairs = zip(stages, hits, strict=True)
    return ", ".join(f"at {stage}: hit {hit or 'nothing'}" for stage, hit in pairs)


async def first_free(rig: Rig, name: str) -> int:
    """Above every id that an earlier blow has used."""
    async with rig.client() as db:
        return max((row["id"] for row in await rows_of(db, name)), default=0) + 1_000


async def _kill_leader(rig: Rig, stage: str) -> str:
    """By a watch: some stages last for a few milliseconds. At *stage*, or the next one seen."""
    leader = await rig.leader()
    async with asyncio.timeout(DETECT_S + MOVE_S), rig.store() as kv:
        watch = kv.watch(b"__procedure/", b"__procedure0", start_revision=await rig.revision() + 1)
        async with aclosing(watch) as watched:
            async for each in watched:
                if any(_has_come_to(stage, event) for event in each.events):
                    break
        rig.playground.children[leader].send(signal.SIGKILL)
    hit = await _steps(rig)
    await rig.kill(leader)
    await rig.restart(leader)
    return ", ".join(hit)


def _has_come_to(stage: str, event: Event) -> bool:
    record = json.loads(event.value) if event.value is not None else {}
    if record.get("kind") != "failover_table":
        return False
    return LEADER_STAGES.index(record["step"]) >= LEADER_STAGES.index(stage)


async def _kill_spark(rig: Rig) -> str:
    """The driver and its Java, as the machine would when memory is short."""

    async def there() -> list[int]:
        return drivers_of(rig) if "move" in await _steps(rig) else []

    pids = await rig.until(there, DETECT_S)
    hit = await _steps(rig)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    return ", ".join(hit)


async def _steps(rig: Rig) -> list[str]:
    records: list[Any] = list((await rig.records()).values())
    return [record["step"] for record in records if record["kind"] == "failover_table"]


def drivers_of(rig: Rig) -> list[int]:
    """Pids of the Spark drivers that this playground's servers have started."""
    driver = b"dataplane.pipelines.driver"
    found = []
    for id in rig.servers:
        for child in children_of(rig.playground.pid(id)):
            with suppress(OSError):
                if driver in Path(f"/proc/{child}/cmdline").read_bytes():
                    found.append(child)
    return found
