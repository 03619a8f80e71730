"""`benchmarks.schema.backfills`: an index over rows that are there already, by Spark.

Rows of (id, tenant, ts, value, tag), the tag 16 bytes at random, come into one region by the bulk
path: a job reads them from Parquet, sorts and writes them, and one manifest takes them. The index
is over the tag. A warm session's job makes the entries and the region takes them. Beside it, in
the same rounds: PostgreSQL's `CREATE INDEX CONCURRENTLY` over the same rows, and pyarrow, which
reads tag and key of the very same files, sorts them and writes one file, synced. The start of the
Spark session is told apart, and so is the load. `--large`: 10 million rows instead of 2 million.
"""

import argparse
import asyncio
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.postgres import Connection, postgres
from benchmarks.report import head, line, ratio
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef, RegionSpec
from dataplane.region.format.families import ROWS as ROWS_FAMILY
from dataplane.region.format.schema import RegionSchema
from dataplane.region.manifests.adoption import Ingest
from dataplane.region.place import RegionPlace
from metasrv.adapters.spark_jobs import SparkJobs, SparkSettings, driver_command
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv_base.clock import SystemClock
from metasrv_base.schema.partition import HashRule
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.jobs import BackfillJob, JobIndex, LoadColumn, LoadJob, LoadRegion
from metasrv_base.wire.node.orders import RegionColumn

ROWS, LARGE = 2_000_000, 10_000_000
FILE_ROWS = 500_000
ROUNDS = 3
REGION_ID = 1024 << 32
COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="int32", nullable=False),
    ColumnDef(id=3, type="timestamp(us)", nullable=False),
    ColumnDef(id=4, type="float64", nullable=False),
    ColumnDef(id=5, type="binary", nullable=False),
)
NAMES = ("id", "tenant", "ts", "value", "tag")
TAG = COLUMNS[4]
MARK, LOADED = "bench", "attempts/load"
READY_S = 0.05  # between looks whether the session is there
MADE = """
CREATE TABLE rows AS SELECT g::bigint AS id, (g % 1000)::int AS tenant,
to_timestamp(g) AS ts, g * 0.5::float8 AS value, decode(md5(g::text), 'hex') AS tag
FROM generate_series(0, {last}) AS g
"""
PATIENT = {"maintenance_work_mem": "256MB", "max_wal_size": "4GB"}


@dataclass
class Figures:
    """Rows a second of each way, round by round."""

    clock: SystemClock
    rows: int
    found: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, took_ms: int) -> None:
        self.found.setdefault(name, []).append(self.rows * 1000 / max(took_ms, 1))

    def timed(self, name: str, work: Callable[[], object]) -> None:
        began_ms = self.clock.mono_ms()
        work()
        self.add(name, self.clock.mono_ms() - began_ms)


def written(folder: Path, rows: int) -> None:
    """Writes the Parquet files of an import, FILE_ROWS rows each."""
    folder.mkdir()
    for start in range(0, rows, FILE_ROWS):
        pq.write_table(
            rows_between(start, min(start + FILE_ROWS, rows)), folder / f"{start}.parquet"
        )


def rows_between(start: int, end: int) -> pa.Table:
    ids = range(start, end)
    columns = {
        "id": ids,
        "tenant": [number % 1000 for number in ids],
        "ts": [number * 1_000_000 for number in ids],
        "value": [number * 0.5 for number in ids],
        "tag": [hashlib.md5(b"%d" % number, usedforsecurity=False).digest() for number in ids],
    }
    types = [parse_type(column.type).arrow for column in COLUMNS]
    arrays = [pa.array(values, type) for values, type in zip(columns.values(), types, strict=True)]
    return pa.table(arrays, names=list(columns))


def new_region(root: str) -> Region:
    place = RegionPlace(LocalDisk(), root, SystemClock())
    return Region.create(place, RegionSpec(region_id=REGION_ID, columns=COLUMNS), epoch=1)


async def loaded(jobs: SparkJobs, region: Region, folder: Path, figures: Figures) -> None:
    """All files of the folder, by the bulk path."""
    known = RegionSchema(1, 1, COLUMNS)
    began_ms = figures.clock.mono_ms()
    version = region.set_schema(known, MARK, reserves=True)
    job = LoadJob(
        job_id="load",
        procedure="bench",
        attempt=LOADED,
        paths=[str(folder)],
        columns=[
            LoadColumn(
                stored=RegionColumn(id=one.id, type=one.type, nullable=one.nullable), name=name
            )
            for one, name in zip(COLUMNS, NAMES, strict=True)
        ],
        key=[COLUMNS[0].id],
        partition=HashRule(columns=(COLUMNS[0].id,), count=1),
        checks=[],
        regions=[LoadRegion(number=0, root=region.place.root, version=version)],
    )
    done = await jobs.load(job, progress=lambda *_: None)
    (brought,) = done.regions
    source = Ingest("bench", LOADED, ROWS_FAMILY, MARK, brought.files)
    await asyncio.to_thread(region.file_ingest.ingest, source)
    figures.add("the load, until it is in the region", figures.clock.mono_ms() - began_ms)
    region.set_schema(known, close=[MARK])
    assert done.rows_in == figures.rows == region.stats().rows


async def backfilled(jobs: SparkJobs, region: Region, index: int, figures: Figures) -> None:
    """One index, a new one each time."""
    region.set_schema(
        RegionSchema(1 + index, 1, COLUMNS, frozenset({index}), frozenset()), f"{MARK}-{index}"
    )
    attempt = f"attempts/index-{index}"
    began_ms = figures.clock.mono_ms()
    snapshot = await asyncio.to_thread(region.snapshot, f"{MARK}-{index}")
    job = BackfillJob(
        job_id=f"job-{index}",
        procedure="bench",
        attempt=attempt,
        snapshot=snapshot,
        index=JobIndex(id=index, columns=[TAG.id]),
    )
    done = await jobs.backfill(job, progress=lambda *_: None)
    figures.add("Spark, the job", figures.clock.mono_ms() - began_ms)
    source = Ingest("bench", attempt, index, snapshot.mark, done.files)
    await asyncio.to_thread(region.file_ingest.ingest, source)
    figures.add("Spark, until it is in the region", figures.clock.mono_ms() - began_ms)
    assert done.entries == figures.rows


def sorted_by_arrow(root: str, out: Path) -> None:
    files = sorted(Path(root, LOADED).iterdir())
    table = pa.concat_tables(pq.read_table(file, columns=[TAG.name, "_key"]) for file in files)
    pq.write_table(table.sort_by(TAG.name), out, compression="zstd")
    with out.open("rb") as file:
        os.fsync(file.fileno())


def indexed_by_postgres(server: Connection) -> None:
    server.run("CREATE INDEX CONCURRENTLY by_tag ON rows (tag)")


@dataclass(frozen=True)
class Scene:
    folder: Path
    region: Region
    server: Connection
    figures: Figures


async def measure(scene: Scene) -> int:
    """Returns how long the session took to start, in ms."""
    toolchain = read_toolchain(checkout())
    assert toolchain is not None, "the bootstrap has not run: make setup"
    environment = {"PYTHONPATH": str(checkout()), **toolchain.environment(os.environ["PATH"])}
    settings = SparkSettings(
        scene.folder / "spark", is_warm=True, import_folders=(str(scene.folder),)
    )
    figures = scene.figures
    jobs = SparkJobs(driver_command(settings), environment, figures.clock, settings)
    async with asyncio.TaskGroup() as tasks:
        began_ms = figures.clock.mono_ms()
        tasks.create_task(jobs.run())
        while not jobs.is_driver_ready:  # noqa: ASYNC110  # it tells nobody else
            await asyncio.sleep(READY_S)
        start_ms = figures.clock.mono_ms() - began_ms
        await loaded(jobs, scene.region, scene.folder / "rows", figures)
        for number in range(ROUNDS):
            await backfilled(jobs, scene.region, 10 + number, figures)
            root, out = scene.region.place.root, scene.folder / "sorted.parquet"
            figures.timed("pyarrow", partial(sorted_by_arrow, root, out))
            figures.timed("PostgreSQL", partial(indexed_by_postgres, scene.server))
            scene.server.run("DROP INDEX by_tag")
        await jobs.close()
    return start_ms


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.schema.backfills", description=__doc__)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--rows", type=int, default=None)
    said = parser.parse_args()
    rows = said.rows or (LARGE if said.large else ROWS)
    with tempfile.TemporaryDirectory(prefix="metasrv-bench-") as folder:
        os.chmod(folder, 0o755)  # the owner of PostgreSQL goes through it
        figures = Figures(SystemClock(), rows)
        written(Path(folder, "rows"), rows)
        region = new_region(f"{folder}/region")
        with postgres(Path(folder, "postgres"), PATIENT) as server:
            server.run(MADE.format(last=rows - 1))
            server.run("VACUUM ANALYZE rows")
            scene = Scene(Path(folder), region, server, figures)
            start_ms = asyncio.run(measure(scene))
    head(f"python -m benchmarks.schema.backfills, {rows:,} rows", ROUNDS)
    print(f"{'start of the session, apart':52}{start_ms:12,} ms")
    for name, values in figures.found.items():
        line(name, values, "rows/s")
    ours = figures.found["Spark, the job"]
    ratio("Spark to pyarrow", ours, figures.found["pyarrow"])
    ratio("Spark to PostgreSQL", ours, figures.found["PostgreSQL"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
