"""The end of a region's log on a disk is that of the open region, whatever has been flushed."""

import posixpath

import pytest

from dataplane.datanode.folders.inventory import inventory
from dataplane.log.records import LogPosition
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.disk.read_only import ReadOnlyDisk
from dataplane.region.engine.region import Region
from dataplane.region.log.sealed_log import NO_RECORD, last_position
from dataplane.region.manifests.manifest import read_current_manifest
from metasrv_base.errors import Corrupt
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, A, B, order, place, write


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(MemoryStore())


def end_of(disk: MemoryDisk, root: str) -> LogPosition:
    manifest = read_current_manifest(disk, root, REGION_ID)
    assert manifest is not None
    return last_position(ReadOnlyDisk(disk), root, manifest)


def test_given_a_region_when_rows_are_logged_flushed_or_opened_again_then_its_last_record_is_told(
    disk: MemoryDisk,
) -> None:
    region = leader(disk)
    ends = [end_of(disk, A)]
    for number in range(3):
        write(region, f"s-{number}", {b"k": (number, "x")})
    ends.append(end_of(disk, A))
    region.maintenance.flush()
    ends.append(end_of(disk, A))
    again = Region.open(place(disk, A), order(2))
    ends.append(end_of(disk, A))
    write(again, "s-9", {b"k": (9, "x")})
    ends.append(end_of(disk, A))

    assert ends == [NO_RECORD, *[LogPosition(1, 3)] * 3, LogPosition(2, 4)]


def test_given_a_copy_that_lags_when_asked_then_it_ends_before_its_leader(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    for number in range(5):
        write(region, f"s-{number}", {b"k": (number, "x")})
    copy.take(sent(region, 0, common=0, upto=3))

    assert (end_of(disk, B), end_of(disk, A)) == (LogPosition(1, 3), LogPosition(1, 5))


def test_given_a_damaged_log_when_asked_then_corrupt(disk: MemoryDisk) -> None:
    region = leader(disk)
    write(region, "s", {b"k": (1, "x")})
    Region.open(place(disk, A), order(2))
    manifest = read_current_manifest(disk, A, REGION_ID)
    assert manifest is not None
    (entry,) = manifest.sealed
    disk.store.live[posixpath.join(A, entry.name)].data[-1] ^= 1

    with pytest.raises(Corrupt):
        end_of(disk, A)


def test_given_folders_when_listed_then_their_logs_are_read_only_if_asked_for() -> None:
    disk = MemoryDisk(MemoryStore())
    root = f"/n/regions/{REGION_ID}-1"
    region = leader(disk, root)
    write(region, "s", {b"k": (1, "x")})

    (plain,) = inventory(disk, "/n", 0, (1 << 63) - 1).roots
    (told,) = inventory(disk, "/n", 0, (1 << 63) - 1, log_ends=True).roots

    assert (plain.log_epoch, plain.log_sequence) == (None, None)
    assert "log_epoch" not in plain.model_dump()
    assert (told.log_epoch, told.log_sequence) == (1, 1)
