"""Sorted input is loaded without shares, and other input is never taken for it; Spark's part runs
in this process."""

from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from dataplane.pipelines.jobs import load_input, load_plan
from dataplane.pipelines.jobs.load import load
from dataplane.pipelines.jobs.load_input import InputReader, look_at
from dataplane.pipelines.jobs.load_plan import FILES_MAX, InputFile, straight_pieces
from metasrv_base.schema.partition import HashRule
from metasrv_base.wire.node.jobs import LoadJob, LoadJobResult
from tests.dataplane.pipelines.in_process import InProcess
from tests.dataplane.pipelines.load_rig import ID, NOTE, Table, brought, load_job, numbered

ROWS = 1_000
BATCH = 50
"""Rows that are read at a time."""
STRAIGHT, SHARED = [1, 2, 1], [1, 2, 1, 1, 1, 1]
"""Tasks: files, pieces and an end; files, pieces that give up, samples, pieces, outputs, an end."""


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_plan, "OUTPUT_ROWS_MIN", 100)
    monkeypatch.setattr(load_input, "BATCH_ROWS", BATCH)


def loaded(job: LoadJob) -> tuple[LoadJobResult, list[int]]:
    """And how many tasks each job of Spark had."""
    spark = InProcess()
    done = load(cast(SparkSession, spark), job, spark)
    return done, [one.tasks for one in spark.jobs]


def files_left(table: Table, job: LoadJob) -> list[str]:
    folder = Path(table.regions[0].place.root) / job.attempt
    return sorted(f"{job.attempt}/{one.name}" for one in folder.iterdir())


@pytest.mark.parametrize("group_rows", [1 << 20, 300, 70])
def test_given_sorted_rows_when_loaded_then_they_are_read_and_written_once(
    tmp_path: Path, group_rows: int
) -> None:
    table = Table(tmp_path)
    table.add(1)
    path = brought(tmp_path / "x.parquet", numbered(*range(ROWS)), group_rows)
    job = load_job([path], table.wanted)

    done, tasks = loaded(job)

    assert (tasks, done.rows_in) == (STRAIGHT, ROWS)
    (region,) = done.regions
    assert files_left(table, job) == sorted(file.name for file in region.files)
    low, high = region.files
    assert low.max_key < high.min_key
    table.take(done.regions)
    assert table.notes() == {id: f"n{id}" for id in range(ROWS)}


@pytest.mark.parametrize(
    "ids",
    [
        [*range(1, ROWS), 0],
        [*range(ROWS // 2, ROWS), *range(ROWS // 2 - 1), ROWS + 1],
        [*range(0, ROWS, 2), *range(1, ROWS, 2)],
        [*range(500, 500 + BATCH), *range(500 - BATCH), *range(500 + BATCH, ROWS + BATCH)],
    ],
    ids=[
        "the last row is the first",
        "the second half begins before the first and ends behind it",
        "two ranges overlap",
        "each batch rises, and one begins below the one before it",
    ],
)
def test_given_rows_in_another_order_when_loaded_then_all_of_them_are_there_once(
    tmp_path: Path, ids: list[int]
) -> None:
    table = Table(tmp_path)
    table.add(1)
    job = load_job([brought(tmp_path / "x.parquet", numbered(*ids))], table.wanted)

    done, tasks = loaded(job)

    assert tasks == SHARED
    (region,) = done.regions
    assert files_left(table, job) == sorted(file.name for file in region.files), "no strays"
    table.take(done.regions)
    assert table.notes() == {id: f"n{id}" for id in ids}


def test_given_a_key_at_the_end_of_a_piece_and_the_begin_of_the_next_then_it_is_named(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    table.add(1)
    half = ROWS // 2
    ids = [*range(half), half - 1, *range(half + 1, ROWS)]

    done, _ = loaded(load_job([brought(tmp_path / "x.parquet", numbered(*ids))], table.wanted))

    assert done.repeated_total == 1


def test_given_sorted_rows_that_break_a_rule_when_loaded_then_they_are_counted(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    table.add(1)
    stored = NOTE.stored.model_copy(update={"nullable": False})
    rows = numbered(*range(ROWS)).set_column(1, "note", pa.array(["x"] * (ROWS - 7) + [None] * 7))
    columns = (ID, NOTE.model_copy(update={"stored": stored}))
    job = load_job([brought(tmp_path / "x.parquet", rows)], table.wanted, columns)

    done, tasks = loaded(job)

    assert (tasks, done.violations_total, len(done.violations)) == (STRAIGHT, 7, 7)


def test_given_several_files_or_regions_when_loaded_then_order_is_not_expected(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path)
    table.add(2)
    paths = [
        brought(tmp_path / f"{part}.parquet", numbered(*range(part, ROWS, 2))) for part in (0, 1)
    ]
    two = HashRule(columns=(1,), count=2)
    for job in (
        load_job(paths, table.wanted[:1]),
        load_job(paths[:1], table.wanted, partition=two),
        load_job(paths[:1], table.wanted[:1], partition=two),
    ):
        _, tasks = loaded(job)

        assert len(tasks) > len(STRAIGHT)


@given(
    st.lists(st.integers(0, 90), min_size=1, max_size=8).filter(any),
    st.integers(1, 7),
)
def test_given_row_groups_when_cut_into_pieces_then_each_row_is_in_one(
    tmp_path_factory: pytest.TempPathFactory, groups: list[int], at_once: int
) -> None:
    path = tmp_path_factory.mktemp("groups") / "x.parquet"
    schema, at = pa.schema([("id", pa.int64())]), 0
    with pq.ParquetWriter(path, schema) as writer:
        for rows in groups:
            writer.write_table(pa.table({"id": range(at, at + rows)}, schema), max(rows, 1))
            at += rows
    job = load_job([str(path)], columns=(ID,))
    file = look_at(job.columns, str(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load_plan, "OUTPUT_ROWS_MIN", 10)
        pieces = straight_pieces([file], at_once)

    assert len(pieces) == max(min(at_once, at // 10), 1)
    reader = InputReader(job)
    found = [part.column("c1").to_pylist() for one in pieces for part in reader.rows(one)]
    assert [id for part in found for id in part] == list(range(at))


def test_given_more_files_than_a_record_holds_then_no_piece_is_a_file() -> None:
    rows = FILES_MAX * load_plan.OUTPUT_ROWS
    assert len(straight_pieces([InputFile("/x", 1, 1, (rows,), rows)], 2)) == FILES_MAX
    assert straight_pieces([InputFile("/x", 1, 1, (rows + 1,), rows)], 2) == ()
    assert straight_pieces([InputFile("/x", 1, 1, (), 0)], 2) == ()
