"""Payloads of a log: groups of statements, their schemas, and what a log costs and replays."""

from pathlib import Path

import pyarrow as pa
import pytest

from dataplane.log.records import (
    LogPosition,
    Record,
    RecordType,
    SegmentHeader,
    encode_record,
    salt_of,
    scan_records,
)
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import ColumnDef, RegionSpec, log_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROWS
from dataplane.region.format.names import parse_segment
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_group import (
    JOINED_MAX,
    GroupPart,
    LoggedGroup,
    LoggedSchema,
    LoggedStatement,
    decode_group,
    encode_group,
    rows_in,
    take_schema,
)
from dataplane.region.log.sealed_log import seal_segment
from metasrv_base.errors import Corrupt, MetaError
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    A,
    batch,
    contents,
    header,
    order,
    place,
    version_of,
    write,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "region"
INDEX = 4
ROWS_SCHEMA = LoggedSchema.of(log_schema(SPEC.columns))
ENTRIES_SCHEMA = LoggedSchema.of(log_schema(ENTRY_COLUMNS))
SCHEMAS = {one.id: one.schema for one in (ROWS_SCHEMA, ENTRIES_SCHEMA)}
STATEMENTS = (
    LoggedStatement("s-1", 7 << 20, 3, schema_version=3, sent_ms=1_700_000_000_123),
    LoggedStatement("the second", (7 << 20) + 1, 1, schema_version=2),
)


def logged(rows: pa.RecordBatch, schema: LoggedSchema) -> pa.RecordBatch:
    arrays = [rows.column(name) for name in schema.schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.schema)


def example() -> bytes:
    """Two statements: rows and an entry, and rows alone."""
    entry = {
        "_key": pa.array([b"x-a"], pa.binary()),
        "_op": pa.array([0], pa.uint8()),
        "_row": pa.array([b"a"], pa.binary()),
    }
    first = logged(batch({b"a": (1, "x"), b"b": None}), ROWS_SCHEMA)
    second = logged(batch({b"a": (2, None)}), ROWS_SCHEMA)
    entries = pa.RecordBatch.from_pydict(entry, schema=ENTRIES_SCHEMA.schema)
    return encode_group(
        STATEMENTS,
        [
            GroupPart(ROWS, ROWS_SCHEMA, [(0, first), (1, second)]),
            GroupPart(INDEX, ENTRIES_SCHEMA, [(0, entries)]),
        ],
    )


def checked(group: LoggedGroup) -> None:
    assert group.statements == STATEMENTS
    rows, entries = group.parts
    assert (rows.family, entries.family) == (ROWS, INDEX)
    assert rows.keys.values == [b"a", b"b", b"a"]
    first, second = (one.version for one in STATEMENTS)
    assert rows.rows.column("_version").to_pylist() == [first, first, second]
    assert rows.rows.column("c1").to_pylist() == [1, None, 2]
    assert entries.rows.to_pydict() == {
        "_key": [b"x-a"],
        "_version": [first],
        "_op": [0],
        "_row": [b"a"],
    }


def test_given_a_group_when_written_today_then_it_is_the_golden_file() -> None:
    assert example() == (GOLDEN / "group.bin").read_bytes()
    assert ROWS_SCHEMA.encode() == (GOLDEN / "schema.bin").read_bytes()


def test_given_the_golden_group_when_read_then_it_is_understood() -> None:
    payload = (GOLDEN / "group.bin").read_bytes()

    checked(decode_group(payload, SCHEMAS, "golden"))
    assert rows_in(payload, "golden") == 4


def test_given_the_golden_schema_when_read_then_it_is_understood() -> None:
    known: dict[bytes, pa.Schema] = {}

    take_schema((GOLDEN / "schema.bin").read_bytes(), known, "golden")

    assert list(known) == [ROWS_SCHEMA.id]
    assert known[ROWS_SCHEMA.id].equals(ROWS_SCHEMA.schema, check_metadata=True)


def test_given_a_group_of_an_unknown_schema_when_decoded_then_it_is_corrupt() -> None:
    with pytest.raises(Corrupt):
        decode_group(example(), {}, "here")


@pytest.mark.parametrize("length", [0, 3, 8, 20, 100, 200, -1])
def test_given_a_cut_payload_when_decoded_then_it_is_corrupt(length: int) -> None:
    with pytest.raises(Corrupt):
        decode_group(example()[:length], SCHEMAS, "here")
    if 0 <= length < 40:
        with pytest.raises(Corrupt):
            rows_in(example()[:length] or b"\1", "here")


def put(region: Region, first: int, count: int) -> None:
    rows = [
        (header(f"018f3c2e-7a11-7000-8000-{at:012x}"), batch({b"%016d" % at: (at, "v")}))
        for at in range(first, first + count)
    ]
    for answer in region.writer.apply(rows):
        assert not isinstance(answer, MetaError)


def test_given_groups_of_64_rows_when_logged_then_a_statement_takes_few_bytes() -> None:
    columns = tuple(ColumnDef(id=at, type="int64", nullable=True) for at in range(1, 11))
    region = Region.create(place(), RegionSpec(region_id=REGION_ID, columns=columns), 1)
    values = {column.name: pa.array([7], pa.int64()) for column in columns}
    key = {"_key": pa.array([b"%016d" % 7], pa.binary()), "_op": pa.array([0], pa.uint8())}
    row = pa.RecordBatch.from_pydict(key | values)
    for first in range(0, 256, 64):
        ids = [f"018f3c2e-7a11-7000-8000-{at:012x}" for at in range(first, first + 64)]
        region.writer.apply([(header(id), row) for id in ids])

    assert region.stats().wal_bytes / 256 <= 250


def test_given_a_schema_when_it_changes_then_its_segment_has_both_and_all_is_replayed() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    put(region, 0, 3)
    put(region, 3, 3)
    wider = (*SPEC.columns, ColumnDef(id=3, type="int64", nullable=True))
    region.set_schema(RegionSchema(2, 0, wider))
    put(region, 6, 2)

    (path,) = (path for path in disk.store.live if "wal-" in path)
    name = parse_segment(path.rpartition("/")[2])
    assert name is not None
    data = bytes(disk.store.live[path].data)
    scan = scan_records(data, SegmentHeader(REGION_ID, name), path)

    types = [record.type for record in scan.records]
    schema, group = RecordType.SCHEMA, RecordType.GROUP
    assert types == [schema, group, group, schema, group]
    assert [record.position.sequence for record in scan.records] == [1, 1, 2, 3, 3]
    assert len(contents(Region.open(place(disk), order(2)))) == 8


def test_given_groups_of_one_row_when_replayed_then_they_are_joined_and_nothing_is_lost() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    count = 2 * JOINED_MAX + 5
    for at in range(count):
        write(region, f"s-{at}", {b"k%d" % (at % 7): (at, None)})
    (path,) = (path for path in disk.store.live if "wal-" in path)
    name = parse_segment(path.rpartition("/")[2])
    assert name is not None

    log = seal_segment(disk, A, REGION_ID, name, is_last=True)
    groups = list(log.groups())

    assert [len(group.statements) for group in groups] == [JOINED_MAX, JOINED_MAX, 5]
    assert (log.rows(), log.sequence) == (count, count)
    again = Region.open(place(disk), order(1))
    assert contents(again) == contents(region)
    assert again.stats().sequence == count
    versions = [version_of(one, b"k3") for one in (region, again)]
    assert versions[0] == versions[1]


def test_given_a_record_of_another_type_when_replayed_then_the_region_does_not_open() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, 1)
    write(region, "s-1", {b"a": (1, None)})
    (path,) = (path for path in disk.store.live if "wal-" in path)
    name = parse_segment(path.rpartition("/")[2])
    assert name is not None
    inode = disk.store.live[path]
    salt, length = salt_of(SegmentHeader(REGION_ID, name)), len(inode.data)
    inode.data += encode_record(
        Record(RecordType.FREEZE, LogPosition(1, 2), length, b"?"), salt, length
    )

    with pytest.raises(Corrupt) as damage:
        Region.open(place(disk), order(2))

    assert damage.value.facts["record_type"] == RecordType.FREEZE
    assert damage.value.facts["sequence"] == 2
