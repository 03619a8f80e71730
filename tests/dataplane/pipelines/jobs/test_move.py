"""Regions of every make, moved by a real Spark and adopted by the real engine."""

import asyncio
import filecmp
import os
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataplane.log.records import HEADER_BYTES
from dataplane.pipelines.jobs.plan import OUTPUT_FILE_BYTES
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, RegionSpec, log_schema
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.orders import DataFile
from tests.dataplane.pipelines.conftest import Warm
from tests.dataplane.pipelines.jobs.region_data import EVERY_TYPE, flip_a_bit
from tests.dataplane.pipelines.rig import (
    BIG_ROWS,
    Cluster,
    Seen,
    big_rows,
    dead_region,
    move_and_adopt,
    move_job,
)
from tests.dataplane.region.retyped import RETYPED, STAGES, come_to, numbers, put
from tests.dataplane.region.rig import REGION_ID, by_key, contents, header, order
from tests.processes import session_is_running

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="session")]


async def test_given_files_and_a_log_when_moved_then_the_region_is_the_same_without_the_old_root(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    before = contents(region)
    borrowed = region.borrowed()

    result = await move_and_adopt(spark.jobs, region)
    region.close()
    shutil.rmtree(cluster.old_root)
    after = contents(Region.open(region.place, order(2)))

    assert after == before
    assert (result.copied_files, result.rewritten_files, result.rewritten_segments) == (2, 1, 1)
    assert result.rows_in == 2 * BIG_ROWS + 300 + 100 + 25
    assert result.rows_out == 2 * BIG_ROWS + 300
    assert result.bytes_in == sum(one.file.bytes for one in borrowed.files) + sum(
        one.bytes for one in borrowed.segments
    )
    assert result.bytes_out == sum(size_of(cluster, file) for file in result.files)


async def test_given_files_when_copied_then_their_bytes_are_the_same(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    old = {one.file.checksum: one.file for one in region.borrowed().files}

    result = await spark.jobs.move(move_job(region), progress=Seen())

    copies = [file for file in result.files if file.checksum in old]
    assert len(copies) == 2
    for copy in copies:
        source = f"{cluster.old_root}/{old[copy.checksum].name}"
        assert filecmp.cmp(source, f"{cluster.new_root}/{copy.name}", shallow=False)


async def test_given_rows_written_after_the_takeover_when_adopted_then_they_win(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    first, second, gone = b"%08d" % 0, b"%08d" % 4, b"%08d" % BIG_ROWS
    job = move_job(region)
    cluster.write(region, {first: (7, "new"), gone: None})

    result = await spark.jobs.move(job, progress=Seen())
    region.maintenance.flush()
    cluster.write(region, {second: (8, "newer")})
    region.file_ingest.adopt("p1", job.attempt, result.files)

    assert by_key(region, first, second, gone) == {first: (7, "new"), second: (8, "newer")}


async def test_given_files_and_a_log_of_another_type_when_moved_then_rows_say_what_they_said(
    spark: Warm, cluster: Cluster
) -> None:
    died = cluster.create(RETYPED)
    for number in range(3):
        put(died, f"s{number}", {b"all": number, b"%d" % number: -number}, STAGES[0])
        if number < 2:
            died.maintenance.flush()
    died.close()
    region = cluster.take_over()
    come_to(region, 2)

    await move_and_adopt(spark.jobs, region)

    shutil.rmtree(cluster.old_root)
    come_to(region, 4)
    assert numbers(region) == {b"all": 2, b"0": 0, b"1": -1, b"2": -2}


async def test_given_open_marks_when_a_log_is_rewritten_then_what_they_need_is_kept(
    spark: Warm, cluster: Cluster
) -> None:
    region = cluster.create()
    versions = [
        cluster.write(region, {b"k": (1, "a"), b"once": (1, None)}),
        cluster.write(region, {b"k": (2, "b"), b"gone": None}),
        cluster.write(region, {b"k": (3, "c"), b"gone": (3, "back")}),
        cluster.write(region, {b"k": None}),
        cluster.write(region, {b"k": (5, "e"), b"gone": None}),
    ]
    region.close()
    job = move_job(cluster.take_over())
    marked = job.borrowed.model_copy(update={"marks": [versions[1]]})

    result = await spark.jobs.move(job.model_copy(update={"borrowed": marked}), progress=Seen())

    found = stored_rows(Path(cluster.new_root, result.files[0].name))
    assert [(key, versions.index(version), op) for key, version, op in found] == [
        (b"gone", 4, DELETE),
        (b"gone", 1, DELETE),
        (b"k", 4, PUT),
        (b"k", 3, DELETE),
        (b"k", 1, PUT),
        (b"once", 0, PUT),
    ]
    assert (result.rows_in, result.rows_out) == (9, 6)


async def test_given_tombstones_alone_when_moved_then_they_are_kept(
    spark: Warm, cluster: Cluster
) -> None:
    region = cluster.create()
    cluster.write(region, {b"a": None, b"b": None})
    region.close()

    result = await move_and_adopt(spark.jobs, cluster.take_over())

    assert (result.rows_in, result.rows_out, len(result.files)) == (2, 2, 1)


async def test_given_a_region_without_rows_when_moved_then_there_is_no_file(
    spark: Warm, cluster: Cluster
) -> None:
    cluster.create().close()

    result = await move_and_adopt(spark.jobs, cluster.take_over())

    assert (result.files, result.rows_in, result.bytes_in) == ([], 0, 0)


async def test_given_a_log_with_no_batch_when_moved_then_the_files_are_moved_alone(
    spark: Warm, cluster: Cluster
) -> None:
    region = cluster.create()
    cluster.write(region, big_rows(0))
    region.maintenance.flush()
    cluster.write(region, {b"torn": (1, None)})
    region.close()
    tear_first_record(cluster)
    successor = cluster.take_over()
    assert [one.bytes for one in successor.borrowed().segments] == [HEADER_BYTES]

    result = await move_and_adopt(spark.jobs, successor)

    assert (result.copied_files, result.rewritten_segments, result.rows_out) == (1, 1, BIG_ROWS)


async def test_given_a_long_log_when_moved_then_it_becomes_files_of_disjoint_ranges(
    spark: Warm, cluster: Cluster
) -> None:
    """Longer than memory may hold, too: the successor has spilled it into files of its own."""
    region = cluster.create(memtable_bytes=OUTPUT_FILE_BYTES)
    rows = OUTPUT_FILE_BYTES // 8192
    for start in range(0, rows, 1000):
        cluster.write(region, big_rows(start, start, 1000, row_bytes=8192))
    region.close()
    successor = cluster.take_over()
    assert any(one.root is None for one in successor.manifest.files), "spilled"

    result = await move_and_adopt(spark.jobs, successor)

    low, high = sorted(result.files, key=lambda file: file.min_key)
    assert low.max_key < high.min_key
    assert result.rows_in == result.rows_out == low.rows + high.rows > rows


async def test_given_every_type_when_moved_then_not_a_bit_has_changed(
    spark: Warm, cluster: Cluster
) -> None:
    columns = tuple(
        ColumnDef(id=number, type=name, nullable=True)
        for number, name in enumerate(EVERY_TYPE, start=1)
    )
    region = cluster.create(RegionSpec(region_id=REGION_ID, columns=columns))
    schema = log_schema(columns)
    values = [[b"a", b"b", b"c"], [PUT, PUT, PUT], *EVERY_TYPE.values()]
    arrays = [pa.array(v, f.type) for v, f in zip(values, schema, strict=True)]
    rows = pa.RecordBatch.from_arrays(arrays, schema=schema)
    (answer,) = region.writer.apply([(header("s"), rows)])
    region.close()

    result = await move_and_adopt(spark.jobs, cluster.take_over())

    assert isinstance(answer, Applied)
    assert (result.rows_in, result.rows_out) == (3, 3)


async def test_given_a_job_when_it_runs_then_progress_rises_to_all_bytes(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    seen = Seen()

    result = await spark.jobs.move(move_job(cluster.take_over()), progress=seen)

    done = [report[0] for report in seen.reports]
    assert done == sorted(set(done))
    assert seen.reports[-1] == (result.bytes_in, result.bytes_in, "bytes")


@pytest.mark.parametrize("kind", ["damaged file", "damaged small file", "damaged log", "gone"])
async def test_given_an_input_that_cannot_be_read_when_moved_then_the_failure_names_it(
    spark: Warm, cluster: Cluster, kind: str
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    borrowed = region.borrowed()
    by_size = sorted(one.file.bytes for one in borrowed.files)
    wanted = by_size[0] if kind == "damaged small file" else by_size[-1]
    name = next(one.file.name for one in borrowed.files if one.file.bytes == wanted)
    if kind == "damaged log":
        name = borrowed.segments[0].name
    path = Path(cluster.old_root, name)
    if kind == "gone":
        os.remove(path)
    else:
        flip_a_bit(path)

    with pytest.raises(Unavailable) as failure:
        await spark.jobs.move(move_job(region), progress=Seen())

    assert failure.value.code == "region-lost"
    assert name in str(failure.value.facts["detail"])


async def test_given_a_killed_driver_when_the_job_is_tried_again_then_the_first_try_is_a_leaving(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    killed = spark.jobs.driver_pid
    assert killed is not None

    def kill_half_way(done: int, total: int) -> None:
        if 0 < done < total:
            os.kill(killed, signal.SIGKILL)

    with pytest.raises(Unavailable):
        await spark.jobs.move(move_job(region), progress=Seen(then=kill_half_way))
    assert not session_is_running(killed), "its Python workers have groups of their own"
    left = snapshot_of(Path(cluster.new_root, "attempts/one"))
    await move_and_adopt(spark.jobs, region, "two")

    assert spark.jobs.driver_pid not in (None, killed)
    assert left, "the first try wrote something"
    assert snapshot_of(Path(cluster.new_root, "attempts/one")) == left, "and nobody touched it"
    assert region.maintenance.collect() == 1
    assert os.listdir(f"{cluster.new_root}/attempts") == ["two"]


async def test_given_a_step_that_is_cancelled_when_a_job_runs_then_the_driver_goes_on(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    await spark.jobs.move(move_job(region, "first"), progress=Seen())
    driver = spark.jobs.driver_pid

    async with asyncio.TaskGroup() as tasks:
        seen = Seen(then=lambda done, total: not step.cancel())
        step = tasks.create_task(spark.jobs.move(move_job(region), progress=seen))

    assert step.cancelled()
    await move_and_adopt(spark.jobs, region, "two")
    assert spark.jobs.driver_pid == driver


async def test_given_a_running_job_when_its_id_is_given_again_then_it_is_refused_alone(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    job = move_job(region)

    first, second = await asyncio.gather(
        spark.jobs.move(job, progress=Seen()),
        spark.jobs.move(job, progress=Seen()),
        return_exceptions=True,
    )

    assert isinstance(second, Unavailable)
    assert not isinstance(first, BaseException)
    assert len(first.files) == 3


async def test_given_moves_when_they_are_done_then_the_driver_has_touched_no_file_of_theirs(
    spark: Warm, cluster: Cluster
) -> None:
    dead_region(cluster)

    await move_and_adopt(spark.jobs, cluster.take_over())

    touched = spark.notes.read_text().splitlines()
    assert any(path.endswith("jobs.py") or "pyspark" in path for path in touched), "it does note"
    assert not [path for path in touched if path.startswith(str(cluster.folder))]


def size_of(cluster: Cluster, file: DataFile) -> int:
    return os.path.getsize(f"{cluster.new_root}/{file.name}")


def stored_rows(path: Path) -> list[tuple[bytes, int, int]]:
    table = pq.read_table(path, columns=["_key", "_version", "_op"])
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def tear_first_record(cluster: Cluster) -> None:
    (path,) = Path(cluster.old_root).glob("wal-*")
    os.truncate(path, HEADER_BYTES + 1)


def snapshot_of(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
