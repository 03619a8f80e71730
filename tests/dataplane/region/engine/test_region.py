"""Batches and reads of one region: atomic, conditional, answered once, bounded."""

import pyarrow as pa
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.group import Applied
from dataplane.region.engine.region import Region
from dataplane.region.format.checksum import digest_rows
from dataplane.region.format.columns import ColumnDef
from dataplane.region.format.key_range import KeyRange, key_after
from dataplane.region.format.versions import version_of_ms
from dataplane.region.place import OpenOrder, RegionLimits
from metasrv_base.errors import Conflict, Refused, Unavailable
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    batch,
    by_key,
    contents,
    created,
    header,
    order,
    place,
    version_of,
    write,
)
from tests.fakes.clock import FakeClock


def new_region(clock: FakeClock | None = None, limits: RegionLimits | None = None) -> Region:
    return Region.create(place(clock=clock, limits=limits), SPEC, epoch=1)


@pytest.fixture(params=["lsm memtable", "lsm file", "memory memtable", "memory file"])
def region(request: pytest.FixtureRequest) -> Region:
    """Two rows, `a` and `b`, and a deleted one, `c`; of each engine, in a memtable or in a file."""
    engine, where = request.param.split()
    region = created(engine, place())
    write(region, "s-1", {b"a": (1, "x"), b"b": (2, None), b"c": (3, "z")})
    write(region, "s-2", {b"c": None})
    if where == "file":
        region.maintenance.flush()
    return region


def test_given_rows_when_read_by_key_and_by_range_then_both_agree(region: Region) -> None:
    assert contents(region) == {b"a": (1, "x"), b"b": (2, None)}
    assert by_key(region, b"b", b"c", b"a", b"nothing") == {b"a": (1, "x"), b"b": (2, None)}
    assert region.reader.get([b"a"], [2]).column_names == ["_key", "_version", "c2"]


def test_given_a_batch_when_one_expectation_fails_then_nothing_of_it_is_done(
    region: Region,
) -> None:
    current = version_of(region, b"a")

    with pytest.raises(Conflict) as refusal:
        write(
            region,
            "s-3",
            {b"a": (9, None), b"b": (9, None), b"d": (9, None)},
            {b"a": current, b"b": 1, b"d": 0},
        )

    assert refusal.value.code == "version-mismatch"
    assert refusal.value.facts == {"keys": [b"b".hex()], "failed": 1}
    assert contents(region) == {b"a": (1, "x"), b"b": (2, None)}


def test_given_an_insert_when_the_key_is_there_then_it_already_exists(region: Region) -> None:
    keys = [f"k{at:02}".encode() for at in range(20)]
    write(region, "many", dict.fromkeys(keys, (0, None)))

    with pytest.raises(Conflict) as refusal:
        write(region, "s-3", dict.fromkeys(keys, (1, None)), dict.fromkeys(keys, 0))

    assert refusal.value.code == "already-exists"
    assert refusal.value.facts == {"keys": [key.hex() for key in keys[:10]], "failed": 20}


def test_given_a_deleted_key_when_expected_absent_then_it_can_be_put(region: Region) -> None:
    write(region, "s-3", {b"c": (4, None), b"e": None}, {b"c": 0, b"e": 0})

    assert contents(region)[b"c"] == (4, None)


def test_given_a_version_when_current_then_put_and_delete_pass_once(region: Region) -> None:
    seen = version_of(region, b"a")
    write(region, "s-3", {b"a": (5, None)}, {b"a": seen})

    with pytest.raises(Conflict):
        write(region, "s-4", {b"a": None}, {b"a": seen})
    write(region, "s-5", {b"a": None}, {b"a": version_of(region, b"a")})

    assert contents(region) == {b"b": (2, None)}


def test_given_a_group_when_applied_then_each_batch_sees_those_before_it(region: Region) -> None:
    answers = region.writer.apply(
        [
            (header("g-1"), batch({b"k": (1, None)}, {b"k": 0})),
            (header("g-2"), batch({b"k": (2, None)}, {b"k": 0})),
            (header("g-3"), batch({b"k": None})),
            (header("g-4"), batch({b"k": (4, None)}, {b"k": 0})),
            (header("g-1"), batch({b"k": (1, None)}, {b"k": 0})),
        ]
    )

    first, second, third, fourth, repeat = answers
    assert isinstance(second, Conflict)
    assert isinstance(first, Applied)
    assert isinstance(third, Applied)
    assert isinstance(fourth, Applied)
    assert first.version < third.version < fourth.version
    assert repeat == Applied(first.version, 1, repeated=True)
    assert contents(region)[b"k"] == (4, None)


def test_given_a_statement_when_sent_again_then_its_first_answer_comes_and_nothing_is_written() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    first = write(region, "once", {b"a": (1, None)}, {b"a": 0})
    write(region, "later", {b"a": (2, None)})

    answers = [write(region, "once", {b"a": (1, None)}, {b"a": 0})]
    region.maintenance.flush()
    answers.append(write(region, "once", {b"a": (1, None)}, {b"a": 0}))
    again = Region.open(place(disk), order(1))
    answers.append(write(again, "once", {b"a": (1, None)}, {b"a": 0}))
    write(again, "in the log", {b"b": (1, None)})
    last = Region.open(place(disk), order(2))
    answers.append(write(last, "once", {b"a": (1, None)}, {b"a": 0}))

    assert answers == [Applied(first.version, 1, repeated=True)] * 4
    assert write(last, "in the log", {b"b": (1, None)}).repeated
    assert contents(last) == {b"a": (2, None), b"b": (1, None)}


def test_given_old_statements_when_time_passes_then_they_are_forgotten() -> None:
    clock = FakeClock()
    region = new_region(clock)
    write(region, "old", {b"a": (1, None)})

    clock.advance(600_001)
    write(region, "new", {b"b": (1, None)})

    assert not write(region, "old", {b"a": (2, None)}).repeated


def test_given_a_clock_that_goes_back_when_opened_again_then_versions_still_rise() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk, clock=FakeClock()), SPEC, epoch=1)
    first = write(region, "s-1", {b"a": (1, None)})
    assert first.version == version_of_ms(FakeClock().wall_ms())
    past = FakeClock(now_ms=0)

    again = Region.open(place(disk, clock=past), order(1))
    second = write(again, "s-2", {b"a": (2, None)})
    again.maintenance.flush()
    third = write(Region.open(place(disk, clock=past), order(1)), "s-3", {b"a": (3, None)})

    assert (second.version, third.version) == (first.version + 1, first.version + 2)


def test_given_a_range_when_scanned_in_pages_then_each_goes_on_behind_the_last(
    region: Region,
) -> None:
    write(region, "many", {f"k{at:03}".encode(): (at, None) for at in range(100)})
    keys: list[bytes] = []
    start = b"k010"

    while True:
        page = list(region.reader.scan(KeyRange(start, b"k090"), [1], limit=7))
        assert sum(part.num_rows for part in page) <= 7
        if not page:
            break
        keys += [key for part in page for key in part.column("_key").to_pylist()]
        start = key_after(keys[-1])

    assert keys == [f"k{at:03}".encode() for at in range(10, 90)]


def test_given_a_scan_when_rows_change_meanwhile_then_it_shows_its_moment(region: Region) -> None:
    scan = region.reader.scan()
    first = next(scan)
    write(region, "s-3", {b"b": None, b"zz": (9, None)})
    region.maintenance.flush()

    keys = [*first.column("_key").to_pylist()]
    keys += [key for part in scan for key in part.column("_key").to_pylist()]

    assert keys == [b"a", b"b"]


def test_given_rows_in_files_and_memory_when_digested_then_only_live_values_count(
    region: Region,
) -> None:
    other = new_region()
    write(other, "x", {b"b": (2, None)})
    other.maintenance.flush()
    write(other, "y", {b"a": (1, "x")})

    assert other.reader.digest() == region.reader.digest()
    assert region.reader.digest() == digest_rows(batch({b"b": (2, None), b"a": (1, "x")}))
    write(other, "z", {b"a": (1, "y")})
    assert other.reader.digest() != region.reader.digest()


def bad_batches() -> dict[str, pa.RecordBatch]:
    good = batch({b"a": (1, "x")})
    no_rows = good.slice(0, 0)
    twice = pa.Table.from_batches([good, good]).combine_chunks().to_batches()[0]
    return {
        "no rows": no_rows,
        "no key": good.drop_columns(["_key"]),
        "no op": good.drop_columns(["_op"]),
        "one key twice": twice,
        "unknown column": good.append_column("c9", pa.array([1])),
        "foreign column": good.append_column("name", pa.array([1])),
        "other type": good.set_column(2, "c1", pa.array([1], pa.int32())),
        "unknown op": good.set_column(1, "_op", pa.array([2], pa.uint8())),
        "null key": good.set_column(0, "_key", pa.array([None], pa.binary())),
        "null where none may be": good.set_column(2, "c1", pa.array([None], pa.int64())),
        "column left out that may not be": good.drop_columns(["c1"]),
    }


@pytest.mark.parametrize("name", bad_batches())
def test_given_a_bad_batch_when_sent_then_it_is_refused_and_changes_nothing(name: str) -> None:
    region = new_region()

    (answer,) = region.writer.apply([(header("s"), bad_batches()[name])])

    assert isinstance(answer, Refused)
    assert answer.code == "invalid-request"
    assert region.stats().wal_bytes == 0
    assert contents(region) == {}


def test_given_a_batch_when_of_another_epoch_or_below_the_floor_then_it_conflicts() -> None:
    disk = MemoryDisk(MemoryStore())
    Region.create(place(disk), SPEC, epoch=1).close()
    region = Region.open(place(disk), OpenOrder(REGION_ID, 2, schema_floor=5))
    rows = batch({b"a": (1, None)})

    answers = region.writer.apply(
        [
            (header("s-1", epoch=1, schema_version=5), rows),
            (header("s-2", epoch=2, schema_version=4), rows),
            (header("s-3", epoch=2, schema_version=5), rows),
        ]
    )

    codes = [getattr(answer, "code", "done") for answer in answers]
    assert codes == ["epoch-mismatch", "schema-version-stale", "done"]
    assert Region.open(place(disk), order(3)).schema_floor == 5


def test_given_a_column_added_later_when_old_rows_are_read_then_it_is_null() -> None:
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})
    region.maintenance.flush()
    write(region, "s-2", {b"b": (2, "y")})
    more = (*SPEC.columns, ColumnDef(id=7, type="float64", nullable=True))

    region = Region.open(place(disk), OpenOrder(REGION_ID, 2, columns=more))

    assert region.reader.get([b"a", b"b"]).column("c7").to_pylist() == [None, None]
    assert sum(part.num_rows for part in region.reader.scan()) == 2
    region.maintenance.flush()
    assert region.reader.get([b"a", b"b"], [7]).column("c7").to_pylist() == [None, None]


def test_given_limits_when_writing_then_flushes_are_due_and_memory_stays_bounded() -> None:
    clock = FakeClock()
    region = new_region(clock, RegionLimits(memtable_bytes=8000, flush_age_ms=1000))
    assert not region.maintenance.needs_flush()
    assert not region.maintenance.flush()
    write(region, "s", {b"a": (1, None)})
    assert not region.maintenance.needs_flush()

    clock.advance(1000)
    assert region.maintenance.needs_flush()
    for number in range(100):
        write(region, f"s-{number}", {f"k{number:03}".encode(): (number, "v")})
        assert region.stats().memtable_bytes < 3 * 8000

    assert len(contents(region)) == 101
    assert region.stats().files > 2


def test_given_memory_that_reaches_its_limit_then_a_flush_is_due_and_not_before() -> None:
    region = new_region(FakeClock(), RegionLimits(memtable_bytes=8_000, flush_age_ms=60_000))
    number = 0

    while region.stats().memtable_bytes < 8_000:
        assert not region.maintenance.needs_flush()
        write(region, f"s-{number}", {f"k{number:03}".encode(): (number, "v")})
        number += 1

    assert number > 1
    assert region.maintenance.needs_flush()
    assert region.maintenance.flush()
    assert not region.maintenance.needs_flush()


def test_given_a_closed_region_when_used_then_it_is_not_ready(region: Region) -> None:
    region.close()

    with pytest.raises(Unavailable):
        write(region, "s", {b"a": (1, None)})
    with pytest.raises(Unavailable):
        region.reader.get([b"a"])
    with pytest.raises(Unavailable):
        region.maintenance.flush()


def test_given_an_idle_region_when_its_log_is_closed_then_the_next_write_opens_another() -> None:
    region = new_region()
    write(region, "s-1", {b"a": (1, "x")})
    region.maintenance.close_log()
    write(region, "s-3", {b"d": (4, None)})
    region.maintenance.close_log()
    region.maintenance.close_log()

    again = Region.open(place(region.place.disk), order(1))

    assert contents(again) == {b"a": (1, "x"), b"d": (4, None)}
