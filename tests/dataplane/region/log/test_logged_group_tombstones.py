"""Many tombstones are logged without values: what they cost, and who reads them."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine import group
from dataplane.region.engine.group import TOMBSTONE_BYTES_MIN, TOMBSTONES_MIN
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import DELETE, PUT, ColumnDef, RegionSpec
from dataplane.region.format.names import parse_segment
from dataplane.region.format.schema import RegionSchema
from dataplane.region.log.logged_group import LoggedGroup
from dataplane.region.log.sealed_log import seal_segment
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, contents, header, order, place, write

COLUMNS = tuple(
    ColumnDef(id=number, type="int64", nullable=True, origin_default=number)
    for number in range(1, 41)
)
WIDE = RegionSpec(region_id=REGION_ID, columns=COLUMNS)
KEYS = [b"%06d" % number for number in range(TOMBSTONES_MIN)]


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(MemoryStore())


def rows(keys: list[bytes], op: int) -> pa.RecordBatch:
    """As frontends send it: a delete names no column, and a put leaves all at their defaults."""
    ops = pa.array([op] * len(keys), pa.uint8())
    return pa.RecordBatch.from_pydict({"_key": pa.array(keys, pa.binary()), "_op": ops})


def apply(region: Region, *batches: tuple[str, pa.RecordBatch]) -> int:
    """Applies them as one group, and returns the bytes that this has added to the log."""
    before = region.stats().wal_bytes
    answers = region.writer.apply([(header(statement), batch) for statement, batch in batches])
    assert [getattr(answer, "rows", answer) for answer in answers] == [
        batch.num_rows for _, batch in batches
    ]
    return region.stats().wal_bytes - before


def groups(disk: MemoryDisk) -> Iterator[LoggedGroup]:
    """The groups of the only segment, as a replay joins them."""
    (path,) = (path for path in disk.store.live if "wal-" in path)
    name = parse_segment(path.rpartition("/")[2])
    assert name is not None
    return seal_segment(disk, A, REGION_ID, name, is_last=True).groups()


def test_given_many_deletes_when_logged_then_each_takes_few_bytes(disk: MemoryDisk) -> None:
    region = Region.create(place(disk), WIDE, 1)
    apply(region, ("s-1", rows(KEYS, PUT)))

    logged = apply(region, ("s-2", rows(KEYS, DELETE)))

    assert logged / len(KEYS) < 20
    assert contents(region) == {}
    again = Region.open(place(disk), order(1))
    assert contents(again) == {}
    assert apply(again, ("s-2", rows(KEYS, DELETE))) == 0, "the statement is remembered"


def test_given_few_deletes_of_many_columns_when_logged_then_they_take_few_bytes() -> None:
    columns = tuple(ColumnDef(id=at, type="int64", nullable=True) for at in range(1, 1_001))
    region = Region.create(place(), RegionSpec(region_id=REGION_ID, columns=columns), 1)
    few = TOMBSTONE_BYTES_MIN // 8_000

    assert apply(region, ("s-1", rows(KEYS[: few + 1], DELETE))) < 100 * few


def test_given_deletes_without_values_when_in_memory_then_the_room_of_a_flush_is_counted(
    disk: MemoryDisk,
) -> None:
    region = Region.create(place(disk), WIDE, 1)
    apply(region, ("s-1", rows(KEYS, DELETE)))
    again = Region.open(place(disk), order(1))

    for opened in (region, again):
        assert opened.stats().memtable_bytes > len(KEYS) * len(COLUMNS) * 8

    again.maintenance.flush()
    assert contents(again) == {}


def test_given_puts_and_deletes_in_one_group_then_both_are_logged_with_all_columns(
    disk: MemoryDisk,
) -> None:
    region = Region.create(place(disk), WIDE, 1)
    apply(region, ("s-1", rows(KEYS, PUT)))

    apply(region, ("s-2", rows(KEYS[:500], DELETE)), ("s-3", rows([b"new"], PUT)))

    (both,) = groups(disk)
    assert len(both.parts[0].rows.schema.names) == 3 + len(COLUMNS)
    assert contents(region).keys() == {*KEYS[500:], b"new"}


def test_given_groups_before_and_behind_when_replayed_then_tombstones_stay_alone(
    disk: MemoryDisk,
) -> None:
    """They take more memory than their bytes in the log say."""
    region = Region.create(place(disk), WIDE, 1)
    for number in range(3):
        apply(region, (f"a-{number}", rows([b"a%d" % number], PUT)))
    for number in range(2):
        apply(region, (f"b-{number}", rows(KEYS, DELETE)))
    for number in range(3):
        apply(region, (f"c-{number}", rows([b"c%d" % number], PUT)))

    assert [len(each.statements) for each in groups(disk)] == [3, 1, 1, 3]
    assert contents(Region.open(place(disk), order(1))) == contents(region)


def test_given_deletes_without_values_when_a_column_came_since_then_the_region_opens(
    disk: MemoryDisk,
) -> None:
    region = Region.create(place(disk), WIDE, 1)
    apply(region, ("s-1", rows(KEYS, PUT)))
    apply(region, ("s-2", rows(KEYS[1:], DELETE)))
    more = ColumnDef(id=99, type="string", nullable=True, origin_default="x")
    region.set_schema(RegionSchema(2, 0, (*COLUMNS, more)))

    assert contents(region).keys() == {KEYS[0]}
    again = Region.open(place(disk), order(2))
    assert contents(again).keys() == {KEYS[0]}
    again.maintenance.flush()
    assert contents(again).keys() == {KEYS[0]}


def test_given_a_copy_when_it_is_sent_deletes_without_values_then_it_has_them(
    disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "TOMBSTONES_MIN", 1)
    region = leader(MemoryDisk(MemoryStore()))
    write(region, "s-1", {b"a": (1, "x"), b"b": (2, "y")})
    write(region, "s-2", {b"a": None})
    copy = copy_at(disk)

    copy.take(sent(region, 0, common=2))

    assert promoted(copy, 2) == {b"b": (2, "y")}
    assert Region.open(place(disk, copy.place.root), order(3)).spec.columns == SPEC.columns
