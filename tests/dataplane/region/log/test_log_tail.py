"""A leader reads its log for copies: whole groups in order, with the schemas that they need."""

from dataplane.log.records import LogPosition
from dataplane.region.copies.history import EpochRun, LogHistory
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.log.log_tail import LogTail
from dataplane.region.manifests.manifest import StoredPosition
from tests.dataplane.region.rig import REGION_ID, SPEC, A, order, place, write

MANY = 1 << 20


def written(disk: MemoryDisk, *numbers: int) -> Region:
    region = Region.create(place(disk), SPEC, epoch=1)
    add(region, *numbers)
    return region


def add(region: Region, *numbers: int) -> None:
    for number in numbers:
        write(region, f"s-{number}", {f"k{number}".encode(): (number, "x")})


def sequences(region: Region, after: int, end: int = MANY, bytes_max: int = MANY) -> list[int]:
    tail = LogTail(region.place.disk, A, REGION_ID)
    return [g.position.sequence for g in tail.after(region.manifest, after, end, bytes_max)]


def test_given_a_log_of_several_openings_when_read_then_its_groups_come_in_order() -> None:
    disk = MemoryDisk(MemoryStore())
    written(disk, 1, 2).close()
    region = Region.open(place(disk), order(3))
    add(region, 3)
    region.maintenance.close_log()
    add(region, 4)

    assert sequences(region, 0) == [1, 2, 3, 4]
    assert sequences(region, 1, end=3) == [2, 3]
    assert sequences(region, 4) == []
    assert region.log_history.runs == ((1, 1), (3, 3))


def test_given_a_bound_when_read_then_one_group_comes_at_least() -> None:
    region = written(MemoryDisk(MemoryStore()), 1, 2, 3)

    assert sequences(region, 0, bytes_max=1) == [1]


def test_given_a_log_that_was_flushed_when_read_from_before_then_it_does_not_reach_back() -> None:
    region = written(MemoryDisk(MemoryStore()), 1, 2)
    region.maintenance.flush()
    add(region, 3)

    assert sequences(region, 1) == []
    assert sequences(region, 2) == [3]


def test_given_a_flush_when_the_region_is_opened_again_then_its_positions_are_known() -> None:
    disk = MemoryDisk(MemoryStore())
    region = written(disk, 1, 2)
    assert region.manifest.in_files == StoredPosition(epoch=0, sequence=0)

    region.maintenance.flush()
    add(region, 3)
    expected = region.log_history
    region.close()

    assert region.manifest.in_files == StoredPosition(epoch=1, sequence=2)
    assert expected == LogHistory(LogPosition(1, 2), (EpochRun(1, 3),), 3)
    assert Region.open(place(disk), order(2)).log_history == expected


def test_given_a_manifest_of_before_when_opened_then_the_position_of_its_files_is_not_known() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    region = written(disk, 1, 2)
    region.maintenance.flush()
    add(region, 3)
    with region._manifest.changing() as manifest:
        region._manifest.publish(manifest.model_copy(update={"in_files": None}))
    region.close()

    opened = Region.open(place(disk), order(2))

    assert opened.log_history.base == LogPosition(0, 2)
    assert opened.manifest.in_files is None
    add(opened, 4)
    opened.maintenance.flush()
    assert opened.manifest.in_files == StoredPosition(epoch=2, sequence=4)
