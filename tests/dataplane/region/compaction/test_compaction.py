"""Merging files: what stays for whom, and that nobody waits or loses a file meanwhile."""

import random
import threading
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.files.file_reader import FileReader
from dataplane.region.format.columns import DELETE
from dataplane.region.format.key_range import KeyRange
from dataplane.region.manifests.manifest import Mark
from dataplane.region.memory.memtable import newest_by_key
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Unavailable
from tests.dataplane.region.rig import SPEC, A, B, Contents, Row, contents, order, place, write
from tests.metasrv.playground.waiting import until

# What stays ---------------------------------------------------------------------------------------


def flushed(region: Region, *groups: Mapping[bytes, Row | None]) -> list[int]:
    """Each group in a file of its own; their versions."""
    versions = []
    for rows in groups:
        statement = f"s-{region.stats().sequence}"
        versions.append(write(region, statement, rows).version)
        region.maintenance.flush()
    return versions


def stored_rows(region: Region) -> pa.Table:
    """Every row of the own files, as they are."""
    return pa.concat_tables(
        part
        for file in region.manifest.files
        for part in FileReader(region.place.files, file).scan(KeyRange(), SPEC.columns)
    )


def ops(region: Region) -> list[int]:
    found: list[int] = stored_rows(region).column("_op").to_pylist()
    return found


def as_of(region: Region, version: int) -> Contents:
    """From the files alone."""
    rows = stored_rows(region)
    then = newest_by_key(rows.filter(pc.less_equal(rows.column("_version"), version)))
    return {row["_key"]: (row["c1"], row["c2"]) for row in then.to_pylist() if row["_op"] != DELETE}


def fresh() -> Region:
    return Region.create(place(MemoryDisk(MemoryStore())), SPEC, epoch=1)


def test_given_overwritten_and_deleted_rows_when_merged_then_one_file_has_the_live_ones() -> None:
    region = fresh()
    flushed(region, {b"a": (1, "x"), b"b": (1, "x")}, {b"a": (2, "y")}, {b"b": None}, {b"c": None})

    assert region.maintenance.compact()

    assert contents(region) == {b"a": (2, "y")}
    assert [file.rows for file in region.manifest.files] == [1]
    assert not region.maintenance.compact()
    assert contents(Region.open(region.place, order(1))) == {b"a": (2, "y")}


def test_given_only_deleted_rows_when_merged_then_no_file_is_left() -> None:
    region = fresh()
    flushed(region, {b"a": (1, None)}, {b"b": (1, None)}, {b"a": None}, {b"b": None})

    assert region.maintenance.compact()

    assert region.manifest.files == ()
    assert region.place.disk.list(f"{A}/data") == []


def test_given_a_mark_when_flushed_and_merged_then_rows_can_be_read_as_of_it() -> None:
    region = fresh()
    (first,) = flushed(region, {b"a": (1, "old"), b"b": (1, None), b"d": None})
    assert region.open_mark("freeze", first)
    assert not region.open_mark("freeze", first)
    write(region, "in one memtable", {b"a": (2, "middle")})
    flushed(region, {b"a": (3, "new")}, {b"b": None}, {b"c": (4, None)})

    assert region.maintenance.compact()

    assert as_of(region, first) == {b"a": (1, "old"), b"b": (1, None)}
    assert contents(region) == {b"a": (3, "new"), b"c": (4, None)}
    assert ops(region).count(DELETE) == 1, "the tombstone above the mark"
    again = Region.open(region.place, order(2))
    assert again.borrowed().marks == [first]
    assert again.close_mark("freeze")
    flushed(again, {b"e": (1, None)}, {b"f": (1, None)}, {b"g": (1, None)})
    assert again.maintenance.compact()
    assert ops(again) == [0, 0, 0, 0, 0]


def test_given_a_moment_that_was_merged_over_when_marked_then_it_is_refused() -> None:
    region = fresh()
    first, _ = flushed(region, {b"a": (1, None)}, {b"a": (2, None)})

    with pytest.raises(Conflict):
        region.open_mark("too late", first)


def test_given_a_mark_when_opened_then_later_rows_are_above_it() -> None:
    region = fresh()
    (first,) = flushed(region, {b"a": (1, None)})

    region.open_mark("ahead", first + 1_000_000_000)

    assert write(region, "s", {b"a": (2, None)}).version > first + 1_000_000_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_given_random_work_and_marks_when_merged_then_every_mark_reads_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    limits = RegionLimits(memtable_bytes=1)  # what a replay brings back is spilled at once
    region = Region.create(place(MemoryDisk(MemoryStore()), limits=limits), SPEC, epoch=1)
    now: Contents = {}
    then: dict[int, Contents] = {}

    for step in range(80):
        rows: dict[bytes, Row | None] = {
            f"k{rng.randrange(12)}".encode(): rng.choice([None, (step, "v")]) for _ in range(3)
        }
        version = write(region, f"s-{step}", rows).version
        now = {key: row for key, row in (now | rows).items() if row is not None}
        match rng.randrange(6):
            case 0:
                region.maintenance.flush()
            case 1:
                region.maintenance.flush()
                region.open_mark(f"m-{step}", version)
                then[version] = dict(now)
            case 2:
                region.maintenance.compact()
            case 3 if then:
                closed = rng.choice(list(then))
                (name,) = (m.name for m in region.manifest.marks if m.version == closed)
                region.close_mark(name)
                del then[closed]
            case 4:
                region = Region.open(region.place, order(1))
            case _:
                continue
        assert contents(region) == now, step

    region.maintenance.flush()
    while region.maintenance.compact():
        pass
    assert contents(region) == now
    assert {version: as_of(region, version) for version in then} == then
    assert [mark.version for mark in region.manifest.marks] == sorted(then)


def test_given_borrowed_rows_when_deleted_and_merged_then_they_do_not_come_back() -> None:
    disk = MemoryDisk(MemoryStore())
    dead = Region.create(place(disk), SPEC, epoch=1)
    flushed(dead, {b"a": (1, None)}, {b"b": (1, None)})
    write(dead, "in the log", {b"c": (1, None)})
    region = Region.open(place(disk, B), order(2, A))
    flushed(region, {b"a": None}, {b"b": None}, {b"c": None}, {b"d": (2, None)})

    assert region.maintenance.compact()

    assert contents(region) == {b"d": (2, None)}
    assert {file.root for file in region.manifest.files} == {None, A}
    assert ops(region).count(DELETE) == 3
    assert Region.open(place(disk, B), order(2, A)).reader.digest() == region.reader.digest()


# Beside readers and writers -----------------------------------------------------------------------


def nothing() -> None:
    pass


class BusyDisk(MemoryDisk):
    """Does something once, in the middle of the first read of a data file."""

    def __init__(self) -> None:
        super().__init__(MemoryStore(), self._look)
        self.meanwhile: Callable[[], object] = nothing

    def _look(self, operation: str, path: str) -> None:
        if operation == "read" and "/data/" in path:
            act, self.meanwhile = self.meanwhile, nothing
            act()


def four_files(disk: MemoryDisk) -> Region:
    region = Region.create(place(disk), SPEC, epoch=1)
    flushed(region, *({f"k{number}".encode(): (number, None)} for number in range(4)))
    return Region.open(place(disk), order(1))


def test_given_a_merge_under_way_when_rows_are_written_and_flushed_then_nobody_waits() -> None:
    disk = BusyDisk()
    region = four_files(disk)
    disk.meanwhile = lambda: flushed(region, {b"k0": (9, None)}, {b"k5": (5, None)})

    assert region.maintenance.compact()

    expected: Contents = {f"k{n}".encode(): (n, None) for n in (1, 2, 3, 5)}
    assert contents(region) == expected | {b"k0": (9, None)}
    assert [file.rows for file in region.manifest.files] == [1, 1, 4]


def test_given_a_scan_under_way_when_files_are_merged_then_it_reads_on_and_they_go_after() -> None:
    region = four_files(MemoryDisk(MemoryStore()))
    scan = region.reader.scan()
    seen = next(scan).num_rows

    assert region.maintenance.compact()
    assert region.maintenance.sweep() == 0
    seen += sum(part.num_rows for part in scan)

    assert seen == 4
    assert region.maintenance.has_unread_files()
    assert region.maintenance.sweep() == 4
    assert len(region.place.disk.list(f"{A}/data")) == 1


def test_given_a_scan_that_was_given_up_when_swept_then_it_holds_nothing() -> None:
    region = four_files(MemoryDisk(MemoryStore()))
    scan = region.reader.scan()
    next(scan)
    region.maintenance.compact()

    del scan

    assert region.maintenance.sweep() == 4


def test_given_a_merge_under_way_when_obsolete_files_are_collected_then_its_output_is_none() -> (
    None
):
    disk = BusyDisk()
    region = four_files(disk)
    disk.create(f"{A}/data/1-1-99.parquet")
    collected: list[int] = []
    disk.meanwhile = lambda: collected.append(region.maintenance.collect())

    assert region.maintenance.compact()

    assert collected == [1]
    assert len(contents(region)) == 4


def test_given_a_region_that_is_closed_when_merging_then_the_merge_ends_and_nothing_goes() -> None:
    disk = BusyDisk()
    region = four_files(disk)
    closing = threading.Thread(target=region.close)

    def close() -> None:
        closing.start()
        until(lambda: region.stopped is not None, limit_s=60)

    disk.meanwhile = close
    with pytest.raises(Unavailable):
        region.maintenance.compact()

    closing.join()
    assert len(disk.list(f"{A}/data")) == 4
    assert len(contents(Region.open(place(disk), order(1)))) == 4


def test_given_a_full_disk_when_merged_then_its_room_is_given_back_and_the_region_goes_on() -> None:
    full = False

    def refuse(operation: str, path: str) -> None:
        if full and operation == "append":
            raise Unavailable("storage-full", path=path)

    disk = MemoryDisk(MemoryStore(), refuse)
    region = four_files(disk)
    full = True

    with pytest.raises(Unavailable):
        region.maintenance.compact()

    assert len(disk.list(f"{A}/data")) == 4
    full = False
    assert region.maintenance.compact()
    assert len(contents(region)) == 4


def test_given_a_mark_of_a_name_when_another_moment_is_asked_then_it_is_refused() -> None:
    region = fresh()
    (first,) = flushed(region, {b"a": (1, None)})
    region.open_mark("m", first)

    with pytest.raises(Conflict):
        region.open_mark("m", first + 5)

    assert region.manifest.marks == (Mark(name="m", version=first),)
    assert not region.close_mark("another")
