"""Entries of an index, made by Spark of a region's rows as of a mark."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from dataplane.region.engine.region import Region
from dataplane.region.format.columns import KEY
from dataplane.region.format.families import ROW
from dataplane.region.indexes.index_entries import IndexDef, entries_of
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.jobs import BackfillJob, BackfillResult
from metasrv_base.wire.node.offenders import Duplicate
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.jobs.region_data import (
    BY_TEXT,
    INDEX,
    MARK,
    SCHEMA,
    backfill_job,
    flip_a_bit,
    region_of,
)
from tests.dataplane.pipelines.rig import Cluster, Seen, big_rows
from tests.dataplane.region.entries import entries_of as stored_entries
from tests.dataplane.region.rig import SPEC, Row

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]

BY_BOTH = (2, 1)
BATCH = 2_000


def entries_at_mark(region: Region, columns: Sequence[int]) -> dict[bytes, bytes]:
    """Returns the entries of the rows as they are now, by the code with which a region checks
    again."""
    index = IndexDef.of(INDEX, columns, SPEC.columns, unique=False)
    parts = [entries_of(pa.Table.from_batches([part]), index) for part in region.reader.scan()]
    found: dict[bytes, bytes] = {}
    for part in parts:
        found |= zip(part.column(KEY).to_pylist(), part.column(ROW).to_pylist(), strict=True)
    return found


def ingested(region: Region, job: BackfillJob, done: BackfillResult) -> dict[bytes, bytes]:
    assert region.file_ingest.ingest(Ingest(job.procedure, job.attempt, INDEX, MARK, done.files))
    return stored_entries(region, INDEX)


def files_of(cluster: Cluster, attempt: str) -> set[str]:
    folder = Path(cluster.old_root, "attempts", attempt)
    return {f"attempts/{attempt}/{path.name}" for path in folder.glob("*")}


def leave_half_a_file(cluster: Cluster, job: BackfillJob) -> None:
    path = Path(cluster.old_root, job.attempt, "half.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PAR1")


async def test_given_more_rows_than_one_task_takes_when_backfilled_then_files_hold_all_entries(
    spark: Warm, cluster: Cluster
) -> None:
    count = 150_000
    numbers = range(count)
    region = region_of(
        cluster,
        {b"%08d" % n: (n % 97, f"v{n * 7919 % count}") for n in numbers[: count // 2]},
        {b"%08d" % n: (n % 97, f"v{n * 7919 % count}") for n in numbers[count // 2 :]},
        {b"%08d" % n: None for n in numbers[::7]},
        {b"%08d" % n: (1, None) for n in numbers[::70]},
    )
    expected = entries_at_mark(region, BY_BOTH)
    cluster.write(region, {b"%08d" % n: (1, "behind the mark") for n in numbers[::100]})
    job, seen = backfill_job(region, BY_BOTH), Seen()

    done = await spark.jobs.backfill(job, progress=seen)

    assert (done.rows_in, done.entries) == (len(expected), len(expected))
    assert len(done.files) == 2
    first, second = done.files
    assert first.max_key < second.min_key
    assert {file.name for file in done.files} == files_of(cluster, "one")
    assert ingested(region, job, done) == expected
    counts = [report[0] for report in seen.reports]
    assert counts == sorted(set(counts))
    assert seen.reports[-1] == (job.snapshot.rows, job.snapshot.rows, "rows")


ALONE: Mapping[bytes, Row | None] = {b"a": (1, "x")}


@pytest.mark.parametrize(
    "rows",
    [
        ALONE,
        {b"%02d" % number: (number, None) for number in range(50)},
        {b"k" * 4000 + b"%02d" % number: (number, "w" * 4000) for number in range(50)},
        {b"a": None},
    ],
    ids=["one row", "all null", "wide", "no row"],
)
async def test_given_rows_of_any_kind_when_backfilled_then_each_has_its_entry(
    spark: Warm, cluster: Cluster, rows: Mapping[bytes, Row | None]
) -> None:
    region = region_of(cluster, rows)
    expected = entries_at_mark(region, BY_TEXT)
    job = backfill_job(region)

    done = await spark.jobs.backfill(job, progress=Seen())

    assert ingested(region, job, done) == expected
    assert len(expected) == done.entries == sum(row is not None for row in rows.values())


async def test_given_a_region_without_files_when_backfilled_then_nothing_is_written(
    spark: Warm, cluster: Cluster
) -> None:
    region = region_of(cluster)
    job = backfill_job(region)

    done = await spark.jobs.backfill(job, progress=Seen())

    assert (job.snapshot.files, done.files, done.entries) == ([], [], 0)


async def test_given_equal_values_when_a_unique_index_is_backfilled_then_they_are_suspects(
    spark: Warm, cluster: Cluster
) -> None:
    region = region_of(
        cluster,
        {b"a": (1, "x"), b"b": (2, "y"), b"c": (3, "x"), b"d": (4, None), b"e": (5, None)},
        {b"f": (6, "y"), b"g": (7, "x"), b"h": (8, "z")},
        {b"f": (6, "w")},
    )
    job = backfill_job(region, unique=True)

    done = await spark.jobs.backfill(job, progress=Seen())

    assert done.duplicates == [Duplicate(values=["x"], row_keys=["61", "63", "67"])]
    assert (done.duplicates_total, done.entries) == (1, 8)
    assert sum(file.rows for file in done.files) == 8, "whoever ingests them decides"


@pytest.mark.parametrize("kind", ["damaged", "gone"])
async def test_given_a_file_that_cannot_be_read_when_backfilled_then_the_failure_names_it(
    spark: Warm, cluster: Cluster, kind: str
) -> None:
    region = region_of(cluster, big_rows(0, rows=500), {b"a": (1, "x")})
    job = backfill_job(region)
    name = job.snapshot.files[0].file.name
    path = Path(cluster.old_root, name)
    if kind == "gone":
        os.remove(path)
    else:
        flip_a_bit(path)

    with pytest.raises(Unavailable) as failure:
        await spark.jobs.backfill(job, progress=Seen())

    assert failure.value.code == "region-lost"
    assert name in str(failure.value.facts["detail"])


def slow_job(cluster: Cluster) -> tuple[Region, BackfillJob]:
    """At its rate it does not end in the life of a test: after some rows it waits for hours."""
    batches = [big_rows(number * BATCH, rows=BATCH, row_bytes=20) for number in range(4)]
    region = region_of(cluster, *batches)
    return region, backfill_job(region).model_copy(update={"rows_per_s": 1})


async def test_given_a_job_that_waits_for_its_rate_when_it_is_let_go_then_it_ends(
    spark: Warm, cluster: Cluster
) -> None:
    region, job = slow_job(cluster)
    expected = entries_at_mark(region, BY_TEXT)
    begun = asyncio.Event()
    seen = Seen(then=lambda done, total: begun.set() if 0 < done < total else None)

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(spark.jobs.backfill(job, progress=seen))
        await begun.wait()
        await spark.jobs.throttle("another", 1)
        await spark.jobs.throttle(job.job_id, None)

    assert ingested(region, job, await waiting) == expected


async def test_given_a_job_that_waits_for_its_rate_when_cancelled_then_the_next_is_done(
    spark: Warm, cluster: Cluster
) -> None:
    region, job = slow_job(cluster)

    async with asyncio.TaskGroup() as tasks:
        seen = Seen(then=lambda done, total: waiting.cancel() if done else None)
        waiting = tasks.create_task(spark.jobs.backfill(job, progress=seen))
    again = backfill_job(region, attempt="two")
    done = await spark.jobs.backfill(again, progress=Seen())

    assert waiting.cancelled()
    assert done.entries == 4 * BATCH


async def test_given_a_driver_that_is_killed_in_a_backfill_when_tried_again_then_nothing_is_missing(
    spark: Warm, cluster: Cluster
) -> None:
    region, job = slow_job(cluster)
    expected = entries_at_mark(region, BY_TEXT)
    killed = spark.jobs.driver_pid
    assert killed is not None

    def kill_half_way(done: int, total: int) -> None:
        if 0 < done < total:
            os.kill(killed, signal.SIGKILL)

    with pytest.raises(Unavailable):
        await spark.jobs.backfill(job, progress=Seen(then=kill_half_way))
    leave_half_a_file(cluster, job)
    again = backfill_job(region, attempt="two")
    done = await spark.jobs.backfill(again, progress=Seen())

    assert ingested(region, again, done) == expected
    assert files_of(cluster, "one"), "nobody touches what another attempt has left"
    region.set_schema(SCHEMA, close=[MARK])
    region.maintenance.collect()
    assert files_of(cluster, "one") == set()
