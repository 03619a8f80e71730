"""`benchmarks.data.failovers`: a datanode dies; its region is writable again, then moved.

One etcd, one metasrv with a warm Spark, three datanodes, one region of rows that do not compress.
Its node is killed with SIGKILL under a client that writes until it is acknowledged. The parts are
those of the procedure's own timeline. The move is Spark's, from submission of its first job to the
last file synced, of what the dead node left: beside it, on the same files before the kill, `cp -r`
with an fsync of every file and folder, and a rewrite of every Parquet file by pyarrow, synced too.
Rounds are warm, and again cold: then the kernel is told to forget the files before they are read.
"""

import argparse
import asyncio
import random
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from benchmarks.data.file_peers import MIB, baselines, forget, linked_files
from benchmarks.report import ROUNDS, head, line, ratio
from metasrv.playground.plan import PlaygroundOptions
from metasrv.playground.playground import Playground
from metasrv.sdk.client import AsyncClient
from metasrv.sdk.connections import connect_async
from metasrv_base.clock import SystemClock
from metasrv_base.schema.instants import parse_instant
from metasrv_base.wire.api.procedures import ProcedureBody
from metasrv_base.wire.api.tables import ColumnSpec, TableSpec

NAME = "main.public.moved"
SPEC = TableSpec(
    name="moved",
    columns=(
        ColumnSpec(name="id", type="int64", nullable=False),
        ColumnSpec(name="noise", type="binary"),
    ),
    primary_key=("id",),
)
ROW_BYTES = 8_192
STATEMENT_ROWS = 512
PATIENCE_MS = 120_000
END_S_MAX = 600
LOOK_MS = 100


@dataclass(slots=True)
class Rounds:
    parts: dict[str, list[float]] = field(default_factory=dict)
    """Each in ms."""
    moves: dict[str, list[float]] = field(default_factory=dict)
    """Each in MiB/s."""

    def add(self, found: dict[str, float], to: dict[str, list[float]]) -> None:
        for name, value in found.items():
            to.setdefault(name, []).append(value)


@dataclass(slots=True)
class Scene:
    up: Playground
    client: AsyncClient
    clock: SystemClock
    folder: Path
    next_id: int = 0

    async def write(self, rows: int) -> None:
        noise = random.Random(self.next_id)
        ids = range(self.next_id, self.next_id + rows)
        self.next_id += rows
        values = [noise.randbytes(ROW_BYTES) for _ in ids]
        columns = {"id": pa.array(ids, pa.int64()), "noise": pa.array(values, pa.binary())}
        await self.client.table(NAME).insert(pa.table(columns))


async def measure(mib: int) -> None:
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        settings = PlaygroundOptions(
            data_dir=Path(folder), frontends=1, metasrv_flags={"spark-warm": "true"}
        )
        async with Playground(settings) as up:
            urls = list(up.metasrv_urls)
            async with connect_async(urls, patience_ms=PATIENCE_MS) as client:
                scene = Scene(up, client, SystemClock(), Path(folder))
                await client.tables.create(SPEC, "main.public")
                for _ in range(mib * MIB // ROW_BYTES // STATEMENT_ROWS):
                    await scene.write(STATEMENT_ROWS)
                warm, cold = Rounds(), Rounds()
                await one_round(scene, Rounds(), is_cold=False)  # Spark's first job
                for _ in range(ROUNDS):
                    await one_round(scene, warm, is_cold=False)
                    await one_round(scene, cold, is_cold=True)
    head(f"python -m benchmarks.data.failovers --mib {mib}")
    show("warm", warm)
    show("cold", cold)


async def one_round(scene: Scene, rounds: Rounds, *, is_cold: bool) -> None:
    region = (await scene.client.tables.route(NAME)).regions[0]
    assert region.leader is not None
    root = scene.up.datanode_roots[region.leader] / "regions"
    files = root / f"{region.region_id}-{region.epoch}"
    linked = linked_files(files, scene.folder / "linked")
    rounds.add(await asyncio.to_thread(baselines, linked, scene.folder, is_cold), rounds.moves)
    shutil.rmtree(linked)
    killed_wall, killed = scene.clock.wall_ms(), scene.clock.mono_ms()
    await scene.up.kill(region.leader)
    if is_cold:
        forget(files)
    await scene.write(1)
    writable = scene.clock.mono_ms() - killed
    ended = await the_end(scene, killed_wall)
    rounds.add(parts(ended, killed_wall, writable), rounds.parts)
    moved = (ended.result or {})["bytes"] / MIB
    took_ms = sum(beat.ms for beat in ended.timeline if beat.step == "move")
    rounds.add({"Spark, the whole step": moved * 1000 / took_ms}, rounds.moves)
    await scene.up.restart(region.leader)


async def the_end(scene: Scene, since_ms: int) -> ProcedureBody:
    """Waits until the failover submitted since *since_ms*, wall clock, has ended; returns it."""
    while True:
        found = await scene.client.procedures.list(limit=10, kind="failover_table")
        for one in found:
            if parse_instant(one.submitted_at, "ms") >= since_ms:
                return await scene.client.procedures.wait(one.id, wait_s=END_S_MAX)
        await scene.clock.sleep_ms(LOOK_MS)


def parts(ended: ProcedureBody, killed_wall: int, writable: int) -> dict[str, float]:
    """Returns the durations of the stages, from the kill to the first acknowledged write, in ms."""
    found: dict[str, float] = {
        "detect": parse_instant(ended.submitted_at, "ms") - killed_wall,
    }
    for step in ("reroute", "await_lease", "open", "serve"):
        beats = [beat for beat in ended.timeline if beat.step == step]
        found[step] = sum(beat.ms for beat in beats)
    found["the rest, to the first write"] = writable - sum(found.values())
    return {**found, "kill to first write": writable}


def show(name: str, rounds: Rounds) -> None:
    print(name)
    for part, values in rounds.parts.items():
        line(f"  {part}", values, "ms")
    for way, values in rounds.moves.items():
        line(f"  {way}", values, "MiB/s", 1)
    spark = rounds.moves["Spark, the whole step"]
    for way in ("cp -r and fsync", "pyarrow rewrite and fsync"):
        ratio(f"  Spark / {way}, {name}", spark, rounds.moves[way])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512, help="of rows in the region")
    asyncio.run(measure(parser.parse_args().mib))
