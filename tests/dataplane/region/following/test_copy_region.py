"""A copy has its leader's log, and in memory and files only what is common."""

import pytest

from dataplane.log.records import LogPosition
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.format.names import segments
from dataplane.region.log.log_tail import LogTail
from dataplane.region.manifests.manifest import read_current_manifest
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Unavailable
from tests.dataplane.region.following.stream import TINY, copy_at, leader, promoted, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, C, contents, order, place, write


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(MemoryStore())


def rows_in_memory(copy: CopyRegion) -> int:
    assert copy._opened is not None
    return sum(memory.rows for memory in copy._opened.content.memories)


def test_given_records_when_taken_then_the_log_has_them_byte_for_byte(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    for number in range(3):
        write(region, f"s-{number}", {f"k{number}".encode(): (number, "x")})

    assert copy.take(sent(region, 0, common=0)) == 3

    theirs = sent(region, 0, common=0).groups
    (name,) = segments(disk.list(B))
    assert name.of == (1, 2), "an opening of its own, in its own root"
    manifest = read_current_manifest(disk, B, REGION_ID)
    assert manifest is not None
    mine = LogTail(disk, B, REGION_ID).after(manifest, 0, end=3, bytes_max=1 << 20)
    assert [(g.position, bytes(g.payload)) for g in mine] == [
        (g.position, bytes(g.payload)) for g in theirs
    ]
    assert [[s.encode() for s in g.schemas] for g in mine] == [
        [s.encode() for s in g.schemas] for g in theirs
    ]


def test_given_a_group_of_records_when_taken_then_they_cost_one_sync(disk: MemoryDisk) -> None:
    region, calls = leader(disk), list[str]()
    copy = copy_at(MemoryDisk(disk.store, lambda operation, path: calls.append(operation)))
    for number in range(5):
        write(region, f"s-{number}", {b"k": (number, "x")})
    copy.take(sent(region, 0, common=0, upto=1))
    calls.clear()

    copy.take(sent(region, 1, common=1))

    assert calls.count("append") == 1
    assert calls.count("sync") == 1
    assert calls[:3] == ["append", "sync", "list"], "then the look at the fence"


def test_given_records_when_they_are_not_common_then_memory_has_none_of_them(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    for number in range(4):
        write(region, f"s-{number}", {f"k{number}".encode(): (number, "x")})

    copy.take(sent(region, 0, common=2))
    assert rows_in_memory(copy) == 2
    copy.take(sent(region, 4, common=4))

    assert rows_in_memory(copy) == 4


def test_given_the_same_records_when_sent_again_then_nothing_is_written(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    write(region, "s-1", {b"a": (1, "x")})
    write(region, "s-2", {b"b": (2, "x")})
    copy.take(sent(region, 0, common=0))
    sizes = {path: len(inode.data) for path, inode in disk.store.live.items()}

    assert copy.take(sent(region, 0, common=2)) == 2
    assert copy.take(sent(region, 1, common=0)) == 2

    assert {path: len(inode.data) for path, inode in disk.store.live.items()} == sizes
    assert copy.common == 2


def test_given_a_gap_when_records_come_then_none_is_taken(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    for number in range(3):
        write(region, f"s-{number}", {b"k": (number, "x")})

    assert copy.take(sent(region, 1, common=0)) == 0
    assert copy.take(sent(region, 0, common=0)) == 3


def test_given_a_leader_that_was_deposed_when_it_speaks_then_it_is_refused(
    disk: MemoryDisk,
) -> None:
    old, copy, other = leader(disk), copy_at(disk), copy_at(disk, C)
    write(old, "s-1", {b"a": (1, "x")})
    copy.take(sent(old, 0, common=0))
    other.take(sent(old, 0, common=0))
    other.close()
    new = Region.open(place(disk, C), order(2))
    write(new, "s-2", {b"b": (2, "x")})
    assert copy.take(sent(new, 1, common=1)) == 2

    with pytest.raises(Conflict):
        copy.take(sent(old, 1, common=1))
    assert copy.durable == LogPosition(2, 2)


def test_given_a_tail_that_the_new_leader_lacks_when_followed_then_it_is_cut(
    disk: MemoryDisk,
) -> None:
    old, copy, other = leader(disk), copy_at(disk), copy_at(disk, C)
    for number in range(3):
        write(old, f"s-{number}", {f"k{number}".encode(): (number, "old")})
    copy.take(sent(old, 0, common=1))
    other.take(sent(old, 0, common=1, upto=1))
    other.close()
    new = Region.open(place(disk, C), order(2))
    write(new, "s-9", {b"k9": (9, "new")})

    assert copy.take(sent(new, 0, common=1)) == 2

    assert copy.durable == LogPosition(2, 2)
    assert copy.common == 1
    expected = {b"k0": (0, "old"), b"k9": (9, "new")}
    assert promoted(copy, 3) == contents(new) == expected


def test_given_a_statement_that_was_cut_when_it_is_sent_again_then_it_takes_effect(
    disk: MemoryDisk,
) -> None:
    old, copy, other = leader(disk), copy_at(disk), copy_at(disk, C)
    write(old, "s-0", {b"k0": (0, "x")})
    write(old, "s-1", {b"k1": (1, "x")})
    copy.take(sent(old, 0, common=1))
    other.take(sent(old, 0, common=1, upto=1))
    other.close()
    new = Region.open(place(disk, C), order(2))
    write(new, "s-9", {b"k9": (9, "x")})
    copy.take(sent(new, 0, common=1))
    copy.close()

    promoted_region = Region.open(place(disk, B), order(3))

    assert write(promoted_region, "s-0", {b"k0": (0, "x")}).repeated
    assert write(promoted_region, "s-9", {b"k9": (9, "x")}).repeated
    assert not write(promoted_region, "s-1", {b"k1": (1, "x")}).repeated


def test_given_a_full_memtable_when_what_is_not_common_is_flushed_then_the_file_lacks_it(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk, limits=TINY)
    for number in range(40):
        write(region, f"s-{number}", {f"k{number:02}".encode(): (number, "x" * 50)})
    while copy.take(sent(region, copy.durable.sequence, common=30, bytes_max=600)) < 34:
        maintenance = copy.maintenance
        assert maintenance is not None
        maintenance.flush()
    manifest = read_current_manifest(disk, B, REGION_ID)

    assert manifest is not None
    assert manifest.files
    assert manifest.in_files is not None
    assert 0 < manifest.in_files.sequence <= 30
    assert sum(file.rows for file in manifest.files) == manifest.in_files.sequence
    assert len(promoted(copy, 2)) >= 34, "and the log has the rest"


def test_given_a_copy_over_its_budget_when_records_come_then_it_takes_no_more_until_it_is_flushed(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk, limits=TINY)
    for number in range(80):
        write(region, f"s-{number}", {f"k{number:02}".encode(): (number, "x" * 50)})
    taken = copy.take(sent(region, 0, common=0))
    assert 0 < taken < 80
    assert copy.take(sent(region, taken, common=0)) == taken
    assert copy.maintenance is not None
    assert not copy.maintenance.flush(), "nothing of it is common"

    assert copy.take(sent(region, taken, common=taken)) == taken
    copy.maintenance.flush()

    assert copy.take(sent(region, taken, common=taken)) > taken


def test_given_few_rows_in_memory_when_a_record_does_not_fit_then_a_flush_is_due(
    disk: MemoryDisk,
) -> None:
    limits = RegionLimits(memtable_bytes=100_000)
    region, copy = leader(disk), copy_at(disk, limits=limits)
    write(region, "s-1", {b"a": (1, "x")})
    write(region, "s-2", {b"b": (2, "x" * 2 * limits.memtable_bytes)})
    copy.take(sent(region, 0, common=0, upto=1))
    maintenance = copy.maintenance
    assert maintenance is not None

    assert copy.take(sent(region, 1, common=0)) == 1
    assert not maintenance.needs_flush(), "what is in memory is not common"
    assert copy.take(sent(region, 1, common=1)) == 1
    assert maintenance.needs_flush(), "by the record, and not by what is in memory"
    maintenance.flush()

    assert copy.take(sent(region, 1, common=1)) == 2
    assert promoted(copy, 2) == contents(region)


def test_given_steady_writes_when_a_flush_is_wanted_then_it_begins_between_two_records(
    disk: MemoryDisk,
) -> None:
    """Each record comes with the word that the last one is common: one is always behind it."""
    region, copy = leader(disk), copy_at(disk)
    for number in range(4):
        write(region, f"s-{number}", {b"%d" % number: (number, "x")})
    copy.take(sent(region, 0, common=0, upto=1))
    copy.take(sent(region, 1, common=1, upto=2))
    maintenance = copy.maintenance
    assert maintenance is not None
    assert not maintenance.flush(), "a record is not common yet"

    copy.flush_soon()
    copy.take(sent(region, 2, common=2, upto=3))

    assert maintenance.flush()
    copy.take(sent(region, 3, common=3))
    assert not maintenance.needs_flush(), "once"
    assert promoted(copy, 2) == contents(region)


def test_given_a_copy_that_starts_again_then_it_goes_on_with_its_log(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    for number in range(3):
        write(region, f"s-{number}", {f"k{number}".encode(): (number, "x")})
    copy.take(sent(region, 0, common=3, upto=2))

    again = CopyRegion(place(disk, B), REGION_ID)
    assert (again.epoch, again.durable, again.common) == (1, (1, 2), 0)
    assert again.take(sent(region, 2, common=2)) == 3

    assert rows_in_memory(again) == 2
    assert promoted(again, 2) == contents(region)


def test_given_a_log_that_does_not_reach_back_when_followed_then_the_copy_says_so(
    disk: MemoryDisk,
) -> None:
    region = leader(disk)
    write(region, "s-1", {b"a": (1, "x")})
    region.maintenance.flush()
    write(region, "s-2", {b"b": (2, "x")})
    region.close()
    region = Region.open(place(disk, A), order(2))
    copy = copy_at(disk)

    with pytest.raises(Unavailable) as failure:
        copy.take(sent(region, 0, common=0))

    assert failure.value.code == "not-ready"
    assert copy.needs_files == 2
    assert copy.maintenance is None


def test_given_a_root_without_a_region_when_opened_as_a_copy_then_it_is_lost(
    disk: MemoryDisk,
) -> None:
    with pytest.raises(Unavailable):
        CopyRegion(place(disk, "/nowhere"), SPEC.region_id)
