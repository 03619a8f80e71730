"""Parts of a move, without Spark: the versions that are kept, and the plan."""

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.pipelines.jobs.plan import OUTPUT_FILE_BYTES, SMALL_FILE_BYTES, plan_move
from dataplane.region.compaction.version_retention import KeptVersions
from dataplane.region.format.columns import DELETE, PUT, file_schema
from metasrv_base.wire.node.inputs import Borrowed, BorrowedFile, SealedSegment
from metasrv_base.wire.node.orders import DataFile, RegionColumn

Stored = tuple[bytes, int, int]
ROWS = st.lists(
    st.tuples(st.sampled_from([b"", b"a", b"b"]), st.integers(1, 9), st.sampled_from([PUT, DELETE]))
)
MARKS = st.lists(st.integers(0, 10), max_size=3)


def table_of(rows: list[Stored]) -> pa.Table:
    keys, versions, ops = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table([keys, versions, ops], schema=file_schema(()))


def kept(rows: list[Stored], marks: list[int], cuts: list[int]) -> list[Stored]:
    """As `KeptVersions` says, the rows coming in tables that end at `cuts`."""
    keeper = KeptVersions(marks)
    edges = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    tables = [keeper.of(table_of(rows[start:end])) for start, end in pairwise(edges)]
    columns = pa.concat_tables(tables).to_pydict().values()
    return list(zip(*columns, strict=True))


def needed(row: Stored, rows: list[Stored], marks: list[int]) -> bool:
    """docs/protocols.md P5, word for word."""
    key, version, op = row
    versions = [one[1] for one in rows if one[0] == key]
    return (
        version == max(versions)
        or any(version == max((v for v in versions if v <= m), default=None) for m in marks)
        or (op == DELETE and any(version > mark for mark in marks))
    )


@given(rows=ROWS, marks=MARKS, cuts=st.lists(st.integers(0, 50), max_size=4))
def test_given_any_rows_when_reduced_then_what_the_protocol_needs_is_kept_and_no_more(
    rows: list[Stored], marks: list[int], cuts: list[int]
) -> None:
    of_one_batch = {(key, version): op for key, version, op in rows}
    rows = [(key, version, op) for (key, version), op in of_one_batch.items()]
    rows.sort(key=lambda row: (row[0], -row[1]))

    assert kept(rows, marks, cuts) == [row for row in rows if needed(row, rows, marks)]


def test_given_a_version_that_comes_twice_when_reduced_then_it_is_kept_once() -> None:
    rows = [(b"a", 5, DELETE), (b"a", 5, DELETE), (b"a", 2, PUT), (b"a", 2, PUT)]

    assert kept(rows, [3], []) == [(b"a", 5, DELETE), (b"a", 2, PUT)]
    assert kept(rows, [3], [1, 3]) == [(b"a", 5, DELETE), (b"a", 2, PUT)]


def file_of(size: int, name: str = "data/1-1-1.parquet") -> BorrowedFile:
    file = DataFile(
        name=name,
        rows=1,
        bytes=size,
        min_key="",
        max_key="",
        min_version=1,
        max_version=1,
        checksum="00000000",
        footer_bytes=0,
        footer_checksum="00000000",
        row_checksum="0" * 16,
    )
    return BorrowedFile(root="/old", file=file)


def borrowed(files: list[BorrowedFile], segments: list[SealedSegment]) -> Borrowed:
    columns = [RegionColumn(id=1, type="int64", nullable=False)]
    return Borrowed(
        region_id="1",
        epoch=2,
        root="/new",
        columns=columns,
        marks=[],
        files=files,
        segments=segments,
    )


BIG, SMALL = file_of(SMALL_FILE_BYTES), file_of(SMALL_FILE_BYTES - 1)
LOG = SealedSegment(root="/old", name="wal-1-1-1", bytes=100, checksum="00000000")


@pytest.mark.parametrize(
    ("files", "segments", "copies"),
    [
        ([BIG, SMALL], [], 2),
        ([BIG, SMALL, SMALL], [], 1),
        ([BIG, SMALL], [LOG], 1),
        ([BIG], [LOG], 1),
        ([], [LOG], 0),
    ],
)
def test_given_inputs_when_planned_then_small_files_are_merged_where_there_is_something_to_merge(
    files: list[BorrowedFile], segments: list[SealedSegment], copies: int
) -> None:
    plan = plan_move(borrowed(files, segments))

    assert len(plan.copies) == copies
    assert len(plan.copies) + len(plan.rewrites) == len(files) + len(segments)


def test_given_a_long_log_when_planned_then_it_becomes_several_files() -> None:
    segment = LOG.model_copy(update={"bytes": OUTPUT_FILE_BYTES})

    assert plan_move(borrowed([], [segment, segment])).outputs(1, of=1) == 3
