"""Rows that were written without a column read as its origin default, wherever they lie."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from dataplane.region.check.inspect import inspect
from dataplane.region.check.inspect_files import inspect_file
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, file_schema
from dataplane.region.format.conforming import as_written_before, conformed
from dataplane.region.place import OpenOrder
from metasrv_base.wire.node.inspect import InspectedFile, InspectRequest, WantedRegion
from tests.dataplane.region.rig import SPEC, batch, header, place, write

SEATS = ColumnDef(id=7, type="int32", nullable=False, origin_default=100)
MORE = (*SPEC.columns, SEATS)
UTC = datetime.UTC


def reopened(disk: MemoryDisk, epoch: int) -> Region:
    return Region.open(place(disk), OpenOrder(SPEC.region_id, epoch, columns=MORE))


def seats_by_key(rows: pa.Table | pa.RecordBatch) -> dict[bytes, int]:
    keys, values = rows.column("_key").to_pylist(), rows.column("c7").to_pylist()
    return dict(zip(keys, values, strict=True))


def seats(region: Region) -> dict[bytes, int]:
    """By key, read whole; points must say the same."""
    found: dict[bytes, int] = {}
    for part in region.reader.scan():
        found |= seats_by_key(part)
    points = region.reader.get(sorted(found))
    assert seats_by_key(points) == found
    return found


@pytest.mark.case("online 46")
def test_given_rows_in_a_file_and_in_the_log_when_a_column_comes_then_they_have_its_default() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x"), b"gone": (9, "x")})
    region.maintenance.flush()
    write(region, "s-2", {b"b": (2, "y"), b"gone": None})

    region = reopened(disk, 2)

    assert seats(region) == {b"a": 100, b"b": 100}
    region.maintenance.flush()
    assert seats(region) == {b"a": 100, b"b": 100}


def test_given_the_column_when_an_older_statement_leaves_it_out_then_the_default_is_stored() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    Region.create(place(disk), SPEC, epoch=1).close()
    region = reopened(disk, 2)
    known = batch({b"a": (1, "x")}).append_column("c7", pa.array([7], pa.int32()))

    unaware = region.writer.apply([(header("s-1", 2), batch({b"b": (2, "y"), b"c": None}))])
    aware = region.writer.apply([(header("s-2", 2), known)])

    assert [getattr(one, "code", "done") for one in (*unaware, *aware)] == ["done", "done"]
    assert seats(region) == {b"a": 7, b"b": 100}
    assert seats(reopened(disk, 3)) == {b"a": 7, b"b": 100}


def test_given_a_nullable_column_with_a_default_then_a_null_that_was_written_stays_null() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})
    column = ColumnDef(id=7, type="string", nullable=True, origin_default="old")
    wanted = OpenOrder(SPEC.region_id, 2, columns=(*SPEC.columns, column))
    region = Region.open(place(disk), wanted)
    null = batch({b"b": (2, "y")}).append_column("c7", pa.array([None], pa.string()))

    region.writer.apply([(header("s-2", 2), null)])

    assert region.reader.get([b"a", b"b"], [7]).column("c7").to_pylist() == ["old", None]
    region.maintenance.flush()
    assert region.reader.get([b"a", b"b"], [7]).column("c7").to_pylist() == ["old", None]


@pytest.mark.parametrize(
    ("type", "origin", "value"),
    [
        ("boolean", True, True),
        ("int8", -3, -3),
        ("float32", 0.5, 0.5),
        ("float64", "NaN", None),
        ("decimal(10,2)", "12.50", Decimal("12.50")),
        ("string", "ü", "ü"),
        ("binary", "AAE=", b"\x00\x01"),
        ("date", "2013-04-01", datetime.date(2013, 4, 1)),
        (
            "timestamp(ms)",
            "2013-04-01T00:00:00Z",
            datetime.datetime(2013, 4, 1, tzinfo=UTC),
        ),
    ],
)
def test_given_an_origin_default_of_any_type_then_rows_have_it_and_tombstones_have_not(
    type: str, origin: bool | int | float | str, value: object
) -> None:
    column = ColumnDef(id=3, type=type, nullable=True, origin_default=origin)
    schema = file_schema([column])
    ops = pa.array([PUT, DELETE], pa.uint8())
    bare = pa.table({"_key": [b"a", b"b"], "_version": [1, 2], "_op": ops})

    found = conformed(bare, schema)

    assert found.schema.equals(schema)
    first, second = found.column("c3").to_pylist()
    assert second is None
    assert first != first if value is None else first == value  # NaN
    assert len(as_written_before(schema.field("c3"), bare.slice(0, 0))) == 0


def file_of(region: Region) -> InspectedFile:
    """The one that it has, with all its values."""
    wanted = WantedRegion(region_id=str(SPEC.region_id), root=region.place.root)
    request = InspectRequest(deep=True, regions=(wanted,))
    (said,) = inspect(region.place.disk, region.place.root, request).regions
    (file,) = said.files
    return file


def test_given_a_file_of_before_when_columns_have_come_and_gone_then_its_checksum_is_right() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x"), b"gone": None})
    region.maintenance.flush()
    now = (*SPEC.columns[:-1], SEATS)

    file = file_of(Region.open(place(disk), OpenOrder(SPEC.region_id, 2, columns=now)))

    assert file.listed == file.found


def test_given_a_column_that_comes_under_a_flush_then_the_checksum_of_the_file_counts_it() -> None:
    disk = MemoryDisk(MemoryStore())
    disk.make_folder("/dn-1/data")
    before = pa.table([[b"a"], [7], [PUT], [1], ["x"]], schema=file_schema(SPEC.columns))

    entry = write_rows(FileTarget(disk, "/dn-1", "data/1-1-1.parquet", MORE), [before])

    file = inspect_file(disk, "/dn-1", entry, deep=True)
    assert file.listed == file.found


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("boolean", True),
        ("int8", -1),
        ("float32", 1.5),
        ("decimal(6,2)", Decimal("1.50")),
        ("binary", b"x"),
        ("date", 3),
        ("timestamp(s)", 5),
        ("timestamp(ms)", 5),
        ("timestamp(us)", 5),
        ("timestamp(ns)", 5),
    ],
)
def test_given_values_of_any_type_when_a_file_is_read_again_then_its_checksum_is_right(
    type: str, value: object
) -> None:
    disk = MemoryDisk(MemoryStore())
    disk.make_folder("/dn-1/data")
    columns = (ColumnDef(id=1, type=type, nullable=True),)
    schema = file_schema(columns)
    arrays = [[b"a", b"b"], [7, 8], [PUT, PUT], pa.array([value, None], schema.field("c1").type)]

    target = FileTarget(disk, "/dn-1", "data/1-1-1.parquet", columns)
    file = inspect_file(
        disk, "/dn-1", write_rows(target, [pa.table(arrays, schema=schema)]), deep=True
    )

    assert file.listed == file.found
