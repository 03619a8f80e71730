"""Failover without a copy: borrow, write elsewhere, adopt, borrow again; never an empty region."""

from dataclasses import replace

import pytest

from dataplane.region.compaction.flush import stored_position
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.place import RegionLimits
from metasrv_base.errors import Conflict, Corrupt, Refused, Unavailable, Unknown
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.rig import (
    REGION_ID,
    SPEC,
    A,
    B,
    C,
    Contents,
    contents,
    order,
    place,
    write,
)
from tests.fakes.clock import FakeClock

ROWS: Contents = {b"file": (1, "f"), b"log": (2, "l")}


@pytest.fixture(name="disk")
def dead_leader_fixture() -> MemoryDisk:
    return dead_leader()


def dead_leader() -> MemoryDisk:
    """A region in A whose leader has died: one row in a file, one in the log, one deleted."""
    disk = MemoryDisk(MemoryStore())
    region = Region.create(place(disk), SPEC, epoch=1)
    write(region, "s-1", {b"file": (1, "f"), b"gone": (0, None)})
    region.maintenance.flush()
    write(region, "s-2", {b"log": (2, "l"), b"gone": None})
    return disk


def test_given_a_dead_leader_when_borrowed_then_all_is_there_and_writes_go_to_the_own_root(
    disk: MemoryDisk,
) -> None:
    before = {path: bytes(inode.data) for path, inode in disk.store.live.items()}

    region = Region.open(place(disk, B), order(2, A))
    write(region, "s-3", {b"new": (3, None)})
    region.maintenance.flush()

    assert contents(region) == ROWS | {b"new": (3, None)}
    borrowed = region.borrowed()
    assert [(file.root, file.file.rows) for file in borrowed.files] == [(A, 2)]
    assert [(log.root, log.name) for log in borrowed.segments] == [(A, "wal-1-1-2")]
    after = {path: bytes(inode.data) for path, inode in disk.store.live.items()}
    assert after.pop(f"{A}/fence-2-1")
    assert {path: data for path, data in after.items() if path.startswith(A)} == before


def test_given_a_statement_of_the_dead_leader_when_repeated_then_it_has_its_first_answer(
    disk: MemoryDisk,
) -> None:
    region = Region.open(place(disk, B), order(2, A))

    assert write(region, "s-1", {b"file": (1, "f"), b"gone": (0, None)}).repeated
    assert write(region, "s-2", {b"log": (2, "l"), b"gone": None}).repeated


@pytest.mark.parametrize("flush_first", [True, False])
def test_given_borrowed_inputs_when_adopted_then_the_dead_root_may_go(
    disk: MemoryDisk, flush_first: bool
) -> None:
    region = Region.open(place(disk, B), order(2, A))
    write(region, "s-3", {b"new": (3, None)})
    if flush_first:
        region.maintenance.flush()
    expected = region.reader.digest()
    files = bring(disk, region, "attempts/p-1")
    write(region, "s-4", {b"log": (9, None)})
    before = region.reader.digest()

    assert region.file_ingest.adopt("procedure-1", "attempts/p-1", files)
    assert not region.file_ingest.adopt("procedure-1", "attempts/p-1", files)

    assert region.reader.digest() == before != expected
    assert region.stats().borrowed_bytes == 0
    assert region.borrowed().files == []
    assert region.borrowed().segments == []
    disk.remove_tree(A)
    again = Region.open(place(disk, B), order(2))
    assert again.reader.digest() == before
    assert not again.file_ingest.adopt("procedure-1", "attempts/p-1", files)
    still_named = Region.open(place(disk, B), order(3, A))
    assert still_named.reader.digest() == before


def test_given_an_adoption_then_the_log_is_retained_from_the_own_part_on(disk: MemoryDisk) -> None:
    """A copy that lacks the records of the dead leader must see that it needs files."""
    region = Region.open(place(disk, B), order(2, A))
    borrowed_to = region.log_history.end
    write(region, "s-3", {b"new": (3, None)})
    region = Region.open(place(disk, B), order(2, A))
    write(region, "s-4", {b"newer": (4, None)})
    before = region.log_history

    files = bring(disk, region, "attempts/p-1")
    region.file_ingest.adopt("procedure-1", "attempts/p-1", files)

    assert before.base.sequence < borrowed_to
    assert region.log_history == before.flushed_to(borrowed_to)
    assert region.manifest.in_files == stored_position(before.at(borrowed_to))
    again = Region.open(place(disk, B), order(2))
    assert again.log_history == region.log_history


def test_given_a_borrowing_leader_when_it_dies_too_then_the_next_borrows_both(
    disk: MemoryDisk,
) -> None:
    second = Region.open(place(disk, B), order(2, A))
    write(second, "s-3", {b"second": (3, None)})
    second.maintenance.flush()
    write(second, "s-4", {b"second log": (4, None)})
    expected = contents(second)

    third = Region.open(place(disk, C), order(3, A, B))
    write(third, "s-5", {b"third": (5, None)})

    assert contents(third) == expected | {b"third": (5, None)}
    assert {file.root for file in third.borrowed().files} == {A, B}
    assert {log.root for log in third.borrowed().segments} == {A, B}
    files = bring(disk, third, "attempts/p-2")
    third.file_ingest.adopt("procedure-2", "attempts/p-2", files)
    with pytest.raises(Unknown):
        write(second, "s-6", {b"late": (6, None)})
    disk.remove_tree(A)
    disk.remove_tree(B)
    again = Region.open(place(disk, C), order(3))
    assert contents(again) == expected | {b"third": (5, None)}


def test_given_a_leader_that_dies_behind_an_adoption_when_the_same_procedure_adopts_then_it_does(
    disk: MemoryDisk,
) -> None:
    second = Region.open(place(disk, B), order(2, A))
    second.file_ingest.adopt("procedure-1", "attempts/p-1", bring(disk, second, "attempts/p-1"))
    write(second, "s-3", {b"second": (3, None)})
    expected = contents(second)

    third = Region.open(place(disk, C), order(3, B))
    done = third.file_ingest.adopt(
        "procedure-1", "attempts/p-2", bring(disk, third, "attempts/p-2")
    )

    assert done
    disk.remove_tree(A)
    disk.remove_tree(B)
    assert contents(Region.open(place(disk, C), order(3))) == expected


def test_given_a_leader_that_comes_back_to_its_root_when_it_opens_then_its_own_part_is_its_own(
    disk: MemoryDisk,
) -> None:
    second = Region.open(place(disk, B), order(2, A))
    write(second, "s-3", {b"second": (3, None)})
    expected = contents(second)

    back = Region.open(place(disk, A), order(3, A, B))

    assert contents(back) == expected
    assert {log.root for log in back.borrowed().segments} == {B}
    assert back.borrowed().files == []


def test_given_more_log_than_memory_when_borrowed_then_it_becomes_own_files(
    disk: MemoryDisk,
) -> None:
    tiny = RegionLimits(memtable_bytes=1)

    region = Region.open(replace(place(disk, B), limits=tiny), order(2, A))

    assert contents(region) == ROWS
    assert region.stats().memtable_bytes == 0
    assert [log.name for log in region.borrowed().segments] == ["wal-1-1-2"]
    again = Region.open(replace(place(disk, B), limits=tiny), order(2, A))
    assert contents(again) == ROWS
    assert again.stats().files == region.stats().files
    again.file_ingest.adopt("procedure", "attempts/p", bring(disk, again, "attempts/p"))
    assert contents(again) == ROWS


def test_given_a_sealed_segment_when_the_old_leader_still_writes_then_it_is_never_read(
    disk: MemoryDisk,
) -> None:
    segment = f"{A}/wal-1-1-2"
    tail = bytes(disk.store.live[segment].data[44:])
    Region.open(place(disk, B), order(2, A))

    disk.store.live[segment].data += tail

    assert contents(Region.open(place(disk, B), order(2, A))) == ROWS
    assert contents(Region.open(place(disk, C), order(3, A, B))) == ROWS


def lost_root(disk: MemoryDisk, root: str, *borrows: str, epoch: int) -> object:
    with pytest.raises(Unavailable) as refusal:
        Region.open(place(disk, root), order(epoch, *borrows))
    assert refusal.value.code == "region-lost"
    return refusal.value.facts["root"]


def test_given_a_root_that_is_gone_when_opened_then_the_region_is_lost_until_it_is_back(
    disk: MemoryDisk,
) -> None:
    kept = dict(disk.store.live)
    disk.remove_tree(A)

    assert lost_root(disk, B, A, epoch=2) == A
    assert lost_root(disk, B, A, epoch=2) == A
    assert lost_root(disk, A, epoch=2) == A

    disk.make_folder(f"{A}/data")
    disk.store.live.update(kept)
    assert contents(Region.open(place(disk, B), order(2, A))) == ROWS


def test_given_borrowed_files_that_are_gone_when_opened_then_the_region_is_lost(
    disk: MemoryDisk,
) -> None:
    Region.open(place(disk, B), order(2, A))
    disk.remove(f"{A}/wal-1-1-2")

    assert lost_root(disk, B, A, epoch=2) == A
    assert lost_root(disk, C, A, B, epoch=3) == A


def test_given_the_second_leaders_root_is_gone_when_a_third_opens_then_the_region_is_lost(
    disk: MemoryDisk,
) -> None:
    check_second_root_gone(disk)


def check_second_root_gone(disk: MemoryDisk) -> None:
    second = Region.open(place(disk, B), order(2, A))
    write(second, "s-3", {b"second": (3, None)})
    disk.remove_tree(B)

    assert lost_root(disk, C, A, B, epoch=3) == B
    assert lost_root(disk, C, A, epoch=3) == B


def test_given_the_own_root_was_wiped_when_opened_again_then_it_is_lost_not_begun_anew(
    disk: MemoryDisk,
) -> None:
    second = Region.open(place(disk, B), order(2, A))
    write(second, "s-3", {b"second": (3, None)})
    expected = contents(second)
    kept = {path: inode for path, inode in disk.store.live.items() if path.startswith(B)}
    disk.remove_tree(B)

    for attempt in range(4):
        clock = FakeClock(now_ms=attempt)  # a fence says when it was raised
        with pytest.raises(Unavailable) as refusal:
            Region.open(place(disk, B, clock), order(2, A))
        assert refusal.value.facts["root"] == B
    assert lost_root(disk, B, A, epoch=3) == B

    disk.store.live.update(kept)
    assert contents(Region.open(place(disk, B), order(3, A))) == expected


def test_given_a_second_leader_that_never_began_when_a_third_opens_then_nothing_is_lost(
    disk: MemoryDisk,
) -> None:
    third = Region.open(place(disk, C), order(3, A, B))

    assert contents(third) == ROWS
    with pytest.raises(Conflict):
        Region.open(place(disk, B), order(2, A))


def test_given_a_manifest_that_is_gone_when_opened_then_it_is_not_an_empty_region(
    disk: MemoryDisk,
) -> None:
    for name in [name for name in disk.list(A) if name.startswith("manifest-")]:
        disk.remove(f"{A}/{name}")

    assert lost_root(disk, B, A, epoch=2) == A
    assert lost_root(disk, A, epoch=2) == A
    with pytest.raises(Unavailable):
        Region.create(place(disk), SPEC, epoch=2)


def test_given_damage_when_opened_then_it_is_corrupt(disk: MemoryDisk) -> None:
    manifest = next(name for name in disk.list(A) if name == "manifest-1-1-2")
    disk.store.live[f"{A}/{manifest}"].data[10] ^= 1

    with pytest.raises(Corrupt):
        Region.open(place(disk, A), order(2))


def test_given_a_created_region_when_created_again_then_only_the_same_order_passes() -> None:
    disk = MemoryDisk(MemoryStore())
    first = Region.create(place(disk), SPEC, epoch=1)
    write(first, "s", {b"a": (1, None)})

    again = Region.create(place(disk), SPEC, epoch=1)

    assert contents(again) == {b"a": (1, None)}
    with pytest.raises(Unknown):
        write(first, "s-2", {b"b": (1, None)})
    with pytest.raises(Conflict):
        Region.create(place(disk), SPEC.model_copy(update={"schema_floor": 9}), epoch=1)
    with pytest.raises(Conflict):
        Region.create(place(disk), SPEC, epoch=2)
    with pytest.raises(Corrupt):
        Region.open(place(disk), replace(order(3), region_id=REGION_ID + 1))


def test_given_an_attempt_when_its_files_do_not_fit_then_it_is_refused(disk: MemoryDisk) -> None:
    region = Region.open(place(disk, B), order(2, A))
    files = bring(disk, region, "attempts/p-1")

    for wrong in (
        [files[0].model_copy(update={"name": "data/2-1-1.parquet"})],
        [files[0].model_copy(update={"name": "attempts/other/copy-0.parquet"})],
        [files[0].model_copy(update={"name": "attempts/p-1/none.parquet"})],
        [files[0].model_copy(update={"bytes": files[0].bytes + 1})],
    ):
        with pytest.raises(Refused):
            region.file_ingest.adopt("procedure", "attempts/p-1", wrong)

    assert region.stats().borrowed_bytes > 0
    assert contents(region) == ROWS


def test_given_obsolete_files_when_collected_then_only_what_nobody_needs_goes(
    disk: MemoryDisk,
) -> None:
    region = Region.open(place(disk, B), order(2, A))
    write(region, "s-3", {b"new": (3, None)})
    region.maintenance.flush()
    for attempt in ("attempts/done", "attempts/dead", "attempts/running"):
        bring(disk, region, attempt)
    region.file_ingest.adopt("procedure", "attempts/done-2", bring(disk, region, "attempts/done-2"))
    disk.create(f"{B}/data/2-1-77.parquet").append(b"begun")
    disk.create(f"{B}/data/notes.txt").append(b"somebody's")
    disk.create(f"{B}/attempts/done-2/late.share").append(b"rows")

    assert region.maintenance.collect(["attempts/running"]) == 4

    assert "late.share" not in disk.list(f"{B}/attempts/done-2")
    assert disk.list(f"{B}/attempts") == ["done-2", "running"]
    assert disk.list(f"{B}/data") == ["2-1-1.parquet", "notes.txt"]
    assert contents(region) == ROWS | {b"new": (3, None)}


def test_given_a_stale_leader_when_it_flushes_adopts_or_collects_then_it_is_stopped(
    disk: MemoryDisk,
) -> None:
    old = Region.open(place(disk, A), order(2))
    write(old, "s-3", {b"x": (1, None)})
    disk.make_folder(f"{A}/attempts/other")
    new = Region.open(place(disk, A), order(3))
    expected = contents(new)

    with pytest.raises(Conflict) as refusal:
        old.maintenance.collect()
    assert refusal.value.code == "stale-epoch"
    for act in (old.maintenance.flush, old.maintenance.collect, old.reader.digest):
        with pytest.raises(Conflict):
            act()

    assert disk.list(f"{A}/attempts") == ["other"]
    assert contents(Region.open(place(disk, A), order(4))) == expected
