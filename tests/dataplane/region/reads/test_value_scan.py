"""Scans of values alone: the same rows as a scan with keys, and no key decoded where none is
needed."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files import file_reader, file_writer
from dataplane.region.files.file_reader import FileReader
from dataplane.region.files.footer import Footer, read_footer
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize
from dataplane.region.format.schema import RegionSchema
from dataplane.region.reads import value_scan
from dataplane.region.reads.value_scan import ValueRows
from tests.dataplane.region.rig import SPEC, Row, place, write

SEATS = ColumnDef(id=7, type="int32", nullable=False, origin_default=100)
KEYS = st.integers(0, 60).map(lambda number: f"k{number:02}".encode())
BOUNDS = st.one_of(st.just(b""), KEYS)
ROWS = st.one_of(st.none(), st.tuples(st.integers(-5, 5), st.sampled_from([None, "x"])))
Change = tuple[str, dict[bytes, Row | None]]
RANGES = st.tuples(st.integers(0, 40), st.integers(1, 20)).map(
    lambda drawn: {f"k{one:02}".encode(): (one, None) for one in range(drawn[0], sum(drawn))}
)
CHANGES: st.SearchStrategy[Change] = st.one_of(
    st.tuples(st.just("write"), st.dictionaries(KEYS, ROWS, min_size=1, max_size=5)),
    st.tuples(st.sampled_from(["write", "write and flush"]), RANGES),
    st.tuples(st.sampled_from(["flush", "merge", "alter", "mark"]), st.just({})),
)


HISTORY = (st.lists(CHANGES, max_size=10), BOUNDS, st.one_of(st.none(), KEYS), st.integers(1, 3))
"""Changes, the bounds of a scan, and how many parts a page has."""


def act(region: Region, number: int, action: str, rows: dict[bytes, Row | None]) -> None:
    match action:
        case "write":
            write(region, f"s-{number}", rows)
        case "write and flush":
            write(region, f"s-{number}", rows)
            region.maintenance.flush()
        case "flush":
            region.maintenance.flush()
        case "merge":
            region.maintenance.compact()
        case "alter":
            region.set_schema(RegionSchema(2, 0, (*SPEC.columns, SEATS)))
        case "mark":
            region.open_mark(f"m-{number}", region.stats().version)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is read together is a few rows: their bounds are everywhere."""
    monkeypatch.setattr(file_writer, "ROW_GROUP", PartSize(rows=3, bytes=1 << 20))
    monkeypatch.setattr(file_reader, "_GROUPS_AT_ONCE", 2)
    monkeypatch.setattr(value_scan, "PART", PartSize(rows=4, bytes=1 << 20))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
@settings(max_examples=200)
@given(*HISTORY)
def test_given_a_history_when_values_are_scanned_then_they_are_those_of_a_scan_with_keys(
    changes: list[Change], start: bytes, end: bytes | None, parts_of_a_page: int
) -> None:
    region = Region.create(place(MemoryDisk(MemoryStore())), SPEC, epoch=1)
    for number, change in enumerate(changes):
        act(region, number, *change)
    wanted = rows_of(region.reader.scan(KeyRange(start, end)))

    found: list[dict[str, object]] = []
    at, is_over = start, False
    while not is_over:
        assert len(found) <= len(wanted), "each row once"
        page = region.reader.scan_values(KeyRange(at, end))
        some = [part for _, part in zip(range(parts_of_a_page), page, strict=False)]
        found += rows_of(part.rows for part in some)
        is_over = len(some) < parts_of_a_page
        at = at if is_over else some[-1].following

    assert found == [_without_keys(row) for row in wanted]


PLAIN_GROUPS = FileReader.plain_groups
PLANTED: dict[str, tuple[object, str, object]] = {
    "rows in memory are overlooked": (value_scan, "_first_key", lambda run, start: None),
    "a row group with several rows of a key counts as plain": (
        file_reader,
        "read_footer",
        lambda *given: replace(read_footer(*given), mixed=frozenset()),
    ),
    "other files are overlooked": (
        FileReader,
        "plain_groups",
        lambda reader, start, horizon: PLAIN_GROUPS(reader, start, None),
    ),
    "a row is read twice": (value_scan, "key_after", lambda key: key),
}


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_of_value_scans_when_compared_then_it_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, name, planted = PLANTED[bug]
    monkeypatch.setattr(where, name, planted)
    same = test_given_a_history_when_values_are_scanned_then_they_are_those_of_a_scan_with_keys
    quick = settings(max_examples=200, phases=[Phase.generate], report_multiple_bugs=False)

    with pytest.raises(AssertionError):
        quick(given(*HISTORY)(same.hypothesis.inner_test))()


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


def _without_keys(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in ("_key", "_version")}


@pytest.mark.slow
@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 3), st.booleans()), min_size=1),
    st.integers(1, 4),
)
def test_given_rows_when_written_then_a_row_group_is_plain_if_its_rows_are_all_there_is_of_a_key(
    drawn: list[tuple[int, int, bool]], group_rows: int
) -> None:
    rows = [
        (b"%02d" % key, version, int(is_deleted))
        for key, versions, is_deleted in sorted({one[0]: one for one in drawn}.values())
        for version in range(versions, 0, -1)
    ]
    count = {key: sum(row[0] == key for row in rows) for key, _, _ in rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_writer, "ROW_GROUP", PartSize(rows=group_rows, bytes=1 << 20))
        footer = footer_of(rows)

    groups = [rows[at : at + group_rows] for at in range(0, len(rows), group_rows)]
    mixed = {
        number
        for number, group in enumerate(groups)
        if any(op or count[key] > 1 for key, _, op in group)
    }
    assert footer.mixed == mixed


def footer_of(rows: list[tuple[bytes, int, int]]) -> Footer:
    disk = MemoryDisk(MemoryStore())
    disk.make_folder("/disk")
    keys, versions, ops = (list(column) for column in zip(*rows, strict=True))
    table = pa.table(
        {
            "_key": pa.array(keys, pa.binary()),
            "_version": pa.array(versions, pa.int64()),
            "_op": pa.array(ops, pa.uint8()),
            "c1": pa.array(versions, pa.int64()),
            "c2": pa.array([None] * len(rows), pa.string()),
        }
    )
    target = file_writer.FileTarget(disk, "/disk", "one.parquet", SPEC.columns)
    entry = file_writer.write_rows(target, [table])
    return read_footer(disk, "/disk/one.parquet", entry)


@dataclass
class Counted:
    """Operations of a scan of values."""

    plain_rows: int = 0
    merged_rows: int = 0
    parts: list[ValueRows] = field(default_factory=list)


def counted(region: Region, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Counts the operations of a scan of the whole region."""
    count = Counted()
    values_of, scan = FileReader.values_of, FileReader.scan

    def plain(self: FileReader, *given: object) -> tuple[pa.RecordBatch, bytes]:
        found = values_of(self, *given)  # type: ignore[arg-type]
        count.plain_rows += found[0].num_rows
        return found

    def merged(self: FileReader, *given: object) -> Iterator[pa.Table]:
        for table in scan(self, *given):  # type: ignore[arg-type]
            count.merged_rows += table.num_rows
            yield table

    with monkeypatch.context() as patch:
        patch.setattr(FileReader, "values_of", plain)
        patch.setattr(FileReader, "scan", merged)
        count.parts = list(region.reader.scan_values())
    return count


def test_given_files_side_by_side_when_values_are_scanned_then_nothing_is_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = Region.create(place(), SPEC, epoch=1)
    for first in (20_000, 0, 10_000):
        rows = {b"k%08d" % at: (at, None) for at in range(first, first + 10_000)}
        write(region, f"s-{first}", rows)
        region.maintenance.flush()

    count = counted(region, monkeypatch)

    assert (count.plain_rows, count.merged_rows) == (30_000, 0)
    ids = [at for part in count.parts for at in part.rows.column("c1").to_pylist()]
    assert ids == list(range(30_000))


def test_given_one_row_in_memory_when_values_are_scanned_then_what_lies_before_it_is_not_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = Region.create(place(), SPEC, epoch=1)
    write(region, "all", {b"k%08d" % at: (at, None) for at in range(20_000)})
    region.maintenance.flush()
    write(region, "one", {b"k%08d" % 10_000: (-1, None)})

    count = counted(region, monkeypatch)

    before = 10_000 // file_writer.ROW_GROUP.rows * file_writer.ROW_GROUP.rows
    assert (count.plain_rows, count.merged_rows) == (before, 20_000 - before)


def test_given_a_page_that_began_within_a_row_group_when_scanned_then_the_next_are_not_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    region = Region.create(place(), SPEC, epoch=1)
    write(region, "all", {b"k%08d" % at: (at, None) for at in range(20_000)})
    region.maintenance.flush()
    scan = region.reader.scan_values

    def from_within() -> Iterator[ValueRows]:
        return scan(KeyRange(b"k%08d" % 100))

    monkeypatch.setattr(region.reader, "scan_values", from_within)
    count = counted(region, monkeypatch)

    group = file_writer.ROW_GROUP.rows
    assert (count.plain_rows, count.merged_rows) == (20_000 - group, group - 100)
