"""Costs of jobs in Spark and on disk, counted: few jobs and tasks, no row through Java, and few
bytes read and written for each row."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs.backfill import backfill
from dataplane.pipelines.jobs.check import check
from dataplane.pipelines.jobs.entry_files import LOOK_ROWS, LOOKS_MAX
from dataplane.pipelines.jobs.load import load
from dataplane.pipelines.jobs.move import move
from metasrv_base.wire.node.jobs import BackfillJob, BackfillResult, LoadJobResult
from tests.dataplane.pipelines.in_process import Counted, InProcess
from tests.dataplane.pipelines.jobs.checked_data import MARK, check_job, sound_region
from tests.dataplane.pipelines.jobs.region_data import backfill_job, region_of
from tests.dataplane.pipelines.load_rig import Table, brought, load_job, numbered
from tests.dataplane.pipelines.rig import BIG_ROWS, Cluster, big_rows, dead_region, move_job
from tests.dataplane.region.entries import SCHEMA

FEW, MANY = 4_000, 40_000
LOOK_BYTES = LOOKS_MAX * LOOK_ROWS * 64
"""Bytes of keys, at most, by which the entries of a file are divided."""


SHARE_BYTES = 100
"""Bytes in transit of an entry of 40 bytes and the key of its row."""

LOADED_SHARE_BYTES = 64
"""Bytes in transit of a row of an id and a short text, and its key."""


@dataclass
class Io:
    """Bytes that this process has read and written by system calls."""

    read: int = 0
    written: int = 0


@contextmanager
def counted() -> Iterator[Io]:
    found = Io()
    before = _now()
    yield found
    found.read, found.written = (b - a for a, b in zip(before, _now(), strict=True))


def _now() -> list[int]:
    lines = Path("/proc/self/io").read_text().splitlines()
    return [int(line.split()[1]) for line in lines[:2]]


def through_spark(jobs: Sequence[Counted]) -> int:
    """Bytes, either way."""
    return sum(job.sent + job.received for job in jobs)


def session(spark: InProcess) -> SparkSession:
    return cast(SparkSession, spark)


def backfilled(folder: Path, rows: int) -> tuple[InProcess, BackfillJob, BackfillResult, Io]:
    region = region_of(Cluster(folder), big_rows(0, rows=rows, row_bytes=40), {b"z": (1, "z")})
    spark, job = InProcess(), backfill_job(region)
    with counted() as io:
        done = backfill(session(spark), job, spark)
    return spark, job, done, io


def test_given_rows_when_backfilled_then_spark_carries_no_row_and_each_is_written_twice(
    tmp_path: Path,
) -> None:
    few, *_ = backfilled(tmp_path / "few", FEW)
    many, job, done, io = backfilled(tmp_path / "many", MANY)

    assert done.entries == MANY + 1
    assert [job.tasks for job in many.jobs] == [2, 1, 1, 1], "a look, pieces, outputs, an end"
    look, others = many.jobs[0], many.jobs[1:]
    assert through_spark(others) < 1.1 * through_spark(few.jobs[1:])
    assert through_spark([look]) < len(job.snapshot.files) * LOOK_BYTES
    entry_bytes = done.bytes_out / MANY
    assert io.written < MANY * (SHARE_BYTES + 1.1 * entry_bytes), "a share and a file"
    assert io.read < 2 * done.bytes_in + 1.1 * done.bytes_out + MANY * SHARE_BYTES


@pytest.mark.parametrize(
    ("step", "tasks", "times"),
    [
        (1, [1, 1, 1], 1),  # the file, its one piece, an end
        (-1, [1, 1, 1, 1, 1], 2),  # the file, a piece that gives up, pieces, outputs, an end
    ],
    ids=["in order", "in another order"],
)
def test_given_a_file_when_loaded_then_spark_carries_no_row_and_few_bytes_are_moved(
    tmp_path: Path, step: int, tasks: list[int], times: int
) -> None:
    """*times*: rows are written; all but the last time as shares."""
    found: list[tuple[InProcess, LoadJobResult, Io]] = []
    for count in (FEW, MANY):
        table = Table(tmp_path / f"{count}")
        table.add(1)
        path = brought(tmp_path / f"{count}.parquet", numbered(*range(count)[::step]))
        spark = InProcess()
        with counted() as io:
            done = load(session(spark), load_job([path], table.wanted), spark)
        found.append((spark, done, io))

    (few, *_), (many, done, io) = found
    assert done.rows_in == MANY
    assert [job.tasks for job in many.jobs] == tasks
    assert through_spark(many.jobs) < 1.1 * through_spark(few.jobs)
    shares = (times - 1) * MANY * LOADED_SHARE_BYTES
    assert io.written < 1.2 * done.bytes_out + shares
    assert io.read < times * 1.3 * done.bytes_in + 1.2 * done.bytes_out + shares


def test_given_a_dead_region_when_moved_then_each_input_is_read_once_and_files_only_copied(
    tmp_path: Path,
) -> None:
    cluster, spark = Cluster(tmp_path), InProcess()
    dead_region(cluster)
    job = move_job(cluster.take_over())

    with counted() as io:
        done = move(session(spark), job, spark)

    assert done.rows_out == 2 * BIG_ROWS + 300
    assert [job.tasks for job in spark.jobs] == [4, 1, 1], "inputs, the one range of keys, an end"
    copied = sum(file.bytes for file in done.files if "copy" in file.name)
    rewritten = done.bytes_in - copied
    assert io.read < copied * 2.01 + rewritten * 6, "by the kernel's copy, and by a look at it"
    assert io.written < copied * 1.01 + rewritten * 6
    assert through_spark(spark.jobs) < 200 * 1024


def test_given_a_region_when_checked_then_nothing_is_left(tmp_path: Path) -> None:
    region, spark = sound_region(cluster := Cluster(tmp_path)), InProcess()
    region.set_schema(SCHEMA, MARK)
    job = check_job(region)
    before = sorted(Path(cluster.old_root).rglob("*"))

    done = check(session(spark), job, spark)

    assert done.faults.found == []
    assert [path for path in sorted(Path(cluster.old_root).rglob("*")) if path.is_file()] == [
        path for path in before if path.is_file()
    ]


def test_given_work_of_no_size_when_it_is_done_then_there_is_no_job(tmp_path: Path) -> None:
    spark = InProcess()
    region = region_of(Cluster(tmp_path))

    done = backfill(session(spark), backfill_job(region), spark)

    assert (done.files, spark.jobs) == ([], [])
