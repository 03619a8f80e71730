"""Rows and index entries in one region: one batch for both, files, merges and marks for each."""

import pyarrow as pa
import pytest

from dataplane.region.check.inspect import inspect
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.intake import take_in
from dataplane.region.engine.region import Region
from dataplane.region.engine.shape import BatchShape
from dataplane.region.format.families import ROWS
from dataplane.region.format.key_range import KeyRange, key_after
from dataplane.region.format.schema import RegionSchema
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Refused, Unavailable
from metasrv_base.wire.node.inspect import InspectRequest, WantedRegion
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.entries import (
    DEAD,
    FIRST,
    INDEX,
    OTHER,
    Place,
    Value,
    by_index,
    entries_of,
    mixed,
    new_region,
    refusal,
    version_in,
    write_mixed,
)
from tests.dataplane.region.format.regions import region
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, batch, contents, header, order, place

__all__ = ["region"]  # fixtures


def test_given_rows_and_entries_in_one_batch_when_read_then_each_is_in_its_family(
    region: Region,
) -> None:
    assert contents(region) == {b"a": (1, "x"), b"b": (2, "w")}
    assert entries_of(region) == {b"w-b": b"b", b"x-a": b"a"}
    assert entries_of(region, OTHER) == {b"1-a": b"a", b"2-b": b"b"}
    assert by_index(region) == [(b"w-b", b"b", (2, "w")), (b"x-a", b"a", (1, "x"))]
    assert version_in(region, (INDEX, b"x-a")) == version_in(region, (ROWS, b"a"))
    assert region.stats().rows == 2


def test_given_an_update_when_the_row_moves_in_the_index_then_the_old_entry_is_gone(
    region: Region,
) -> None:
    changed: dict[Place, Value] = {
        (ROWS, b"a"): (1, "a"),
        (INDEX, b"x-a"): None,
        (INDEX, b"a-a"): b"a",
    }

    write_mixed(region, "s-2", changed, {(ROWS, b"a"): version_in(region, (ROWS, b"a"))})

    assert by_index(region) == [(b"a-a", b"a", (1, "a")), (b"w-b", b"b", (2, "w"))]


def test_given_an_expectation_of_an_entry_when_it_fails_then_no_row_is_written(
    region: Region,
) -> None:
    insert: dict[Place, Value] = {(ROWS, b"c"): (3, "x"), (INDEX, b"x-a"): b"c"}

    with pytest.raises(Conflict) as taken:
        write_mixed(region, "s-2", insert, {(ROWS, b"c"): 0, (INDEX, b"x-a"): 0})
    with pytest.raises(Conflict) as moved:
        write_mixed(region, "s-3", insert, {(INDEX, b"x-a"): 1})

    assert taken.value.code == "already-exists"
    assert taken.value.facts == {"keys": [b"x-a".hex()], "failed": 1, "index": INDEX}
    assert moved.value.code == "version-mismatch"
    assert contents(region).keys() == {b"a", b"b"}
    current = version_in(region, (INDEX, b"x-a"))
    assert not write_mixed(region, "s-4", insert, {(INDEX, b"x-a"): current}).repeated


def test_given_a_group_when_an_entry_is_taken_by_a_batch_before_then_the_next_sees_it() -> None:
    region = new_region()
    wanted: dict[Place, Value] = {(INDEX, b"v"): b"a"}

    first, second, gone, third = region.writer.apply(
        [
            (header("g-1", 1, 2), mixed(wanted, {(INDEX, b"v"): 0})),
            (header("g-2", 1, 2), mixed(wanted, {(INDEX, b"v"): 0})),
            (header("g-3", 1, 2), mixed({(INDEX, b"v"): None})),
            (header("g-4", 1, 2), mixed(wanted, {(INDEX, b"v"): 0})),
        ]
    )

    assert [isinstance(one, Conflict) for one in (first, second, gone, third)] == [
        False,
        True,
        False,
        False,
    ]


def test_given_one_key_in_two_families_when_written_then_they_are_two() -> None:
    region = new_region()

    write_mixed(region, "s", {(ROWS, b"k"): (1, None), (INDEX, b"k"): b"k"}, {(INDEX, b"k"): 0})

    assert contents(region) == {b"k": (1, None)}
    assert entries_of(region) == {b"k": b"k"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({(INDEX, b"k"): (1, None)}, "null in a put"),
        ({(ROWS, b"k"): b"k"}, "not null"),
        ({(OTHER + 9, b"k"): b"k"}, "there is no such index"),
        ({(-1, b"k"): b"k"}, "there is no such index"),
        ({(DEAD, b"k"): b"k"}, "the index was dropped"),
        ({(DEAD, b"k"): None}, "the index was dropped"),
    ],
)
def test_given_a_batch_that_fits_no_family_when_written_then_it_is_refused(
    values: dict[Place, Value], reason: str
) -> None:
    region = new_region()

    answer = refusal(region, mixed(values))

    assert isinstance(answer, Refused)
    if (INDEX, b"k") not in values:
        assert answer.facts["reason"] == reason
    assert region.stats().wal_bytes == 0


def test_given_an_entry_with_a_value_of_the_table_when_written_then_it_is_refused() -> None:
    rows = mixed({(INDEX, b"k"): b"k"})
    at = rows.schema.get_field_index("c1")

    answer = refusal(new_region(), rows.set_column(at, "c1", pa.array([1], pa.int64())))

    assert answer.facts == {"column": "c1", "family": INDEX, "reason": "not null"}


def test_given_an_index_that_a_newer_schema_may_bring_when_written_then_it_is_not_ready() -> None:
    region = new_region()
    newer = mixed({(9, b"k"): b"k"})

    assert refusal(region, newer, schema_version=3).code == "not-ready"
    region.set_schema(RegionSchema(3, 1, SPEC.columns, frozenset({9}), frozenset()))
    write_mixed(region, "s", {(9, b"k"): b"k"})

    assert entries_of(region, 9) == {b"k": b"k"}
    with pytest.raises(Refused):
        list(region.reader.scan_entries(10))
    with pytest.raises(Unavailable):
        list(region.reader.scan_index(10, schema_version=4))


def test_given_batches_without_entries_when_taken_in_then_the_family_may_be_named() -> None:
    plain = batch({b"a": (1, "x"), b"b": None})
    named = mixed({(ROWS, b"a"): (1, "x"), (ROWS, b"b"): None})

    shape = BatchShape(SPEC.columns)
    (first,), (second,) = take_in(named, shape).parts, take_in(plain, shape).parts
    assert (first.family, first.keys.values) == (second.family, second.keys.values)
    assert first.rows.equals(second.rows)


def test_given_files_of_families_when_merged_then_each_family_is_merged_for_itself() -> None:
    region = new_region()
    for number in range(4):
        key = b"%d" % number
        write_mixed(region, f"s-{number}", {(ROWS, key): (number, "v"), (INDEX, b"v" + key): key})
        region.maintenance.flush()
    assert [file.family for file in region.manifest.files].count(INDEX) == 4

    assert region.maintenance.compact() is not None
    assert region.maintenance.compact() is not None
    assert region.maintenance.compact() is None

    assert sorted(file.family for file in region.manifest.files) == [ROWS, INDEX]
    assert len(by_index(region)) == 4


@pytest.mark.slow
def test_given_little_memory_when_entries_come_then_all_families_are_bounded_together() -> None:
    region = new_region(limits=RegionLimits(memtable_bytes=4_000))
    for number in range(100):
        key = b"%03d" % number
        values: dict[Place, Value] = {(ROWS, key): (number, "v")}
        values |= {(index, b"v" + key): key for index in (INDEX, OTHER)}
        write_mixed(region, f"s-{number}", values)
        assert region.stats().memtable_bytes < 3 * 4_000

    again = Region.open(region.place, order(2))

    assert len(by_index(again)) == len(contents(again)) == 100


def test_given_a_scan_of_an_index_when_rows_change_behind_it_then_it_shows_one_moment() -> None:
    region = new_region()
    rows: dict[Place, Value] = {(ROWS, b"%04d" % n): (n, "old") for n in range(3_000)}
    rows |= {(INDEX, b"i%04d" % n): b"%04d" % n for n in range(3_000)}
    write_mixed(region, "s-1", rows)
    scan = region.reader.scan_index(INDEX)
    first = next(scan)

    write_mixed(region, "s-2", {(ROWS, b"2999"): (0, "new"), (ROWS, b"2998"): None})
    write_mixed(region, "s-3", {(INDEX, b"i2997"): None})

    table = pa.Table.from_batches([first, *scan])
    assert table.column("c1").to_pylist() == list(range(3_000))
    assert set(table.column("c2").to_pylist()) == {"old"}
    assert len(by_index(region)) == 2_998


def test_given_an_index_when_scanned_in_pieces_then_all_comes_once_in_its_order(
    region: Region,
) -> None:
    found, begin = [], b""
    while part := by_index(region, KeyRange(begin, b"y"), limit=1):
        found += part
        begin = key_after(part[-1][0])

    assert found == by_index(region)
    assert by_index(region, KeyRange(b"w", b"x")) == [(b"w-b", b"b", (2, "w"))]
    some = next(region.reader.scan_index(INDEX, None, [2]))
    assert some.schema.names == ["_entry", "_key", "_version", "c2"]


def test_given_an_entry_whose_row_is_gone_when_scanned_then_only_entries_show_it() -> None:
    region = new_region()
    write_mixed(region, "s", {(INDEX, b"v"): b"nothing"})

    assert by_index(region) == []
    assert entries_of(region) == {b"v": b"nothing"}
    assert region.reader.digest(index=INDEX).rows == 1
    assert region.reader.digest().rows == 0


def test_given_entries_when_moved_and_read_otherwise_then_their_digest_is_the_same(
    region: Region,
) -> None:
    before = region.reader.digest(index=INDEX)

    region.maintenance.flush()

    assert region.reader.digest(index=INDEX) == before
    assert before != region.reader.digest(index=OTHER)


def test_given_borrowed_families_when_adopted_then_the_dead_root_may_go() -> None:
    disk = MemoryDisk(MemoryStore())
    first = new_region(disk)
    write_mixed(first, "s-1", FIRST)
    first.maintenance.flush()
    write_mixed(first, "s-2", {(ROWS, b"c"): (3, "a"), (INDEX, b"a-c"): b"c"})
    region = Region.open(place(disk, B), order(2, A))
    expected = by_index(region)

    region.file_ingest.adopt("p-1", "attempts/1", bring(disk, region, "attempts/1"))
    disk.remove_tree(A)

    assert by_index(region) == expected
    assert {file.family for file in region.manifest.files} == {ROWS, INDEX, OTHER}
    assert by_index(Region.open(place(disk, B), order(3))) == expected


def test_given_a_region_when_inspected_then_each_index_has_its_digest(region: Region) -> None:
    root = region.place.root
    wanted = WantedRegion(region_id=str(REGION_ID), root=root)

    (said,) = inspect(region.place.disk, root, InspectRequest(deep=True, regions=(wanted,))).regions

    assert said.live is not None
    assert (said.live.rows, said.live.checksum) == (2, region.reader.digest().hex)
    assert [(one.index, one.rows, one.checksum) for one in said.entries] == [
        (index, 2, region.reader.digest(index=index).hex) for index in (INDEX, OTHER)
    ]
    assert all(file.error is None for file in said.files)


def test_given_indexes_when_a_client_writes_rows_alone_then_they_are_refused(
    region: Region,
) -> None:
    """It would leave entries behind that lead to rows that are not as they say."""
    epoch = region.opening.epoch
    alone = header("alone", epoch, 2).model_copy(update={"maintains_indexes": False})

    (refused,) = region.writer.apply([(alone, batch({b"c": (3, "z")}))])
    (taken,) = region.writer.apply([(header("whole", epoch, 2), batch({b"c": (3, "z")}))])

    assert isinstance(refused, Refused)
    assert "through a frontend" in str(refused.facts["reason"])
    assert not isinstance(taken, Refused)
    assert contents(region)[b"c"] == (3, "z")
