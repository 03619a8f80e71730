"""A copy that its leader's log does not reach takes the leader's files, then follows the log."""

import pytest

from dataplane.log.records import LogPosition
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion
from dataplane.region.format.names import manifests, segments
from dataplane.region.manifests.copied_names import COPIED
from dataplane.region.manifests.manifest import read_current_manifest
from metasrv_base.errors import Conflict, Corrupt, Unavailable
from tests.dataplane.region.fetching.fetching import begun, fetched, flushed, receive, written
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.rig import REGION_ID, A, B, C, contents, order, place, write


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk(MemoryStore())


def names_at(disk: Disk, root: str) -> list[str]:
    return disk.list(f"{root}/{COPIED}")


def test_given_a_learner_of_a_region_that_has_flushed_then_it_has_files_and_log(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 5)
    flushed(region, 5, 9)
    written(region, 9, 12)

    fetched(region, copy)

    assert (copy.durable, copy.common) == (LogPosition(1, 9), 9)
    assert copy.take(sent(region, 9, common=12)) == 12
    assert promoted(copy, 2) == contents(region)


def test_given_statements_in_files_when_the_copy_leads_then_they_are_known(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 5)
    fetched(region, copy)
    copy.take(sent(region, 5, common=5))
    copy.close()

    region = Region.open(place(disk, B), order(2))

    assert write(region, "s-3", {b"k003": (3, "x")}).repeated
    assert not write(region, "s-7", {b"k007": (7, "x")}).repeated


def test_given_files_that_were_fetched_when_begun_again_then_only_the_rest_is_missing(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    for first in (0, 5, 10):
        flushed(region, first, first + 5)
    fetch = begun(region, copy)
    assert len(fetch.missing) == 4, "statements, and a file of each flush"
    receive(region, fetch, fetch.missing[1])
    arrival = fetch.receive(fetch.missing[1])
    arrival.append(b"half of a file")

    copy = CopyRegion(place(disk, B), REGION_ID)  # the node was killed
    fetch = begun(region, copy)

    assert len(fetch.missing) == 3
    assert fetch.bytes_here == fetch.file(2).bytes
    assert len(names_at(disk, B)) == 1, "half files go"
    fetched(region, copy)
    assert promoted(copy, 2) == contents(region)


def test_given_a_leader_that_merges_meanwhile_then_its_files_stay_until_they_are_fetched(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    for first in range(0, 40, 5):
        flushed(region, first, first + 5)
    fetch = begun(region, copy)
    statements, *files = fetch.missing
    receive(region, fetch, statements)
    receive(region, fetch, files[0])

    while region.maintenance.compact():
        pass
    assert len(region.manifest.files) < len(files)
    for number in files[1:]:
        receive(region, fetch, number)
    copy.install(fetch)

    assert promoted(copy, 2) == contents(region)
    region.unpin_files("session")
    region.maintenance.sweep()
    left = [name for name in disk.list(f"{A}/data") if name.endswith(".parquet")]
    assert len(left) == len(region.manifest.files), "nobody keeps the others any more"


def test_given_a_leader_that_flushes_meanwhile_then_a_second_fetch_brings_what_is_new(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    for first in range(0, 20, 5):
        flushed(region, first, first + 5)
    fetch = begun(region, copy)
    for number in fetch.missing:
        receive(region, fetch, number)
    flushed(region, 20, 25)
    copy.install(fetch)
    assert copy.take(sent(region, 20, common=25)) == 20
    assert copy.needs_files == 1, "the leader's log begins behind 25"

    fetch = begun(region, copy)

    data = [number for number in fetch.missing if number > len(fetch.manifest.statement_files)]
    assert len(data) == 1
    fetched(region, copy)
    assert copy.durable == LogPosition(1, 25)
    assert copy.take(sent(region, 25, common=25)) == 25
    assert promoted(copy, 2) == contents(region)


def test_given_a_file_that_is_damaged_on_its_way_then_nothing_is_taken(disk: MemoryDisk) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 5)
    fetch = begun(region, copy)
    before = read_current_manifest(disk, B, REGION_ID)

    for number in fetch.missing:
        with pytest.raises(Corrupt):
            receive(region, fetch, number, lambda data: bytes([data[0] ^ 1]) + data[1:])
        with pytest.raises(Corrupt):
            receive(region, begun(region, copy), number, lambda data: data[:-1])

    assert begun(region, copy).missing == fetch.missing
    assert read_current_manifest(disk, B, REGION_ID) == before
    assert copy.take(sent(region, 5, common=5)) == 0
    fetched(region, copy)
    assert promoted(copy, 2) == contents(region)


def test_given_a_file_that_goes_before_the_install_then_it_is_refused_and_fetched_again(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 5)
    fetch = begun(region, copy)
    for number in fetch.missing:
        receive(region, fetch, number)
    (name,) = names_at(disk, B)
    disk.remove(f"{B}/{COPIED}/{name}")

    with pytest.raises(Unavailable):
        copy.install(fetch)

    assert copy.durable.sequence == 0
    fetched(region, copy)
    assert promoted(copy, 2) == contents(region)


def test_given_a_copy_with_a_tail_of_its_own_when_it_takes_files_then_the_tail_is_gone(
    disk: MemoryDisk,
) -> None:
    """The new leader has flushed behind the place at which the logs part."""
    old, copy, other = leader(disk), copy_at(disk), copy_at(disk, C)
    written(old, 0, 6)
    copy.take(sent(old, 0, common=2))
    other.take(sent(old, 0, common=2, upto=3))
    other.close()
    new = Region.open(place(disk, C), order(2))
    flushed(new, 100, 104)
    with pytest.raises(Unavailable):
        copy.take(sent(new, 0, common=7))

    fetched(new, copy)

    assert (copy.epoch, copy.durable) == (2, LogPosition(2, 7))
    written(new, 110, 112)
    assert copy.take(sent(new, 7, common=9)) == 9
    assert promoted(copy, 3) == contents(new)
    assert b"k005" not in contents(new)
    assert all(segment.epoch > 1 for segment in segments(disk.list(B)))


def test_given_another_leader_meanwhile_then_what_was_fetched_is_not_taken(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 5)
    fetch = begun(region, copy)
    for number in fetch.missing:
        receive(region, fetch, number)
    region.close()
    region = Region.open(place(disk, A), order(2))
    flushed(region, 5, 7)
    with pytest.raises(Unavailable):
        copy.take(sent(region, 0, common=0))

    with pytest.raises(Corrupt):
        copy.install(fetch)

    fetched(region, copy)
    assert (copy.epoch, copy.durable.sequence) == (2, 7)
    with pytest.raises(Conflict):
        copy.take(sent(leader(MemoryDisk(MemoryStore())), 0, common=0))


def test_given_a_leader_whose_log_reaches_back_after_all_then_no_files_are_needed(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    flushed(region, 0, 3)
    recent = sent(region, 0, common=0)
    assert copy.take(recent) == 0
    assert copy.needs_files == 1
    region.close()
    region, records = leader(disk := MemoryDisk(MemoryStore())), None
    written(region, 0, 3)
    records = sent(region, 0, common=3)
    region.maintenance.flush()
    kept = type(records)(1, region.log_history, 3, records.groups)

    assert copy.take(kept) == 3, "the leader still had the records in memory"

    assert copy.needs_files is None


def test_given_files_that_were_merged_by_the_leader_when_the_copy_merges_then_no_row_is_hidden(
    disk: MemoryDisk,
) -> None:
    """Runs of merges have the names of files, and both merge in openings of the same numbers."""
    region, copy = leader(disk), copy_at(disk)
    for first in range(0, 40, 5):
        flushed(region, first, first + 5)
    while region.maintenance.compact():
        pass
    fetched(region, copy)
    for first in range(40, 80, 5):
        written(region, first, first + 5)
        copy.take(sent(region, copy.durable.sequence, common=copy.durable.sequence + 5))
        copy.take(sent(region, copy.durable.sequence, common=copy.durable.sequence))
        assert copy.maintenance is not None
        copy.maintenance.flush()
    while copy.maintenance is not None and copy.maintenance.compact():
        pass

    assert copy.durable.sequence == 80
    assert promoted(copy, 2) == contents(region)


def test_given_a_copy_that_follows_files_when_it_is_tidied_then_only_what_it_needs_is_left(
    disk: MemoryDisk,
) -> None:
    region, copy = leader(disk), copy_at(disk)
    for first in range(0, 20, 5):
        flushed(region, first, first + 5)
    fetched(region, copy)
    disk.create(f"{B}/{COPIED}/left.parquet").close()
    copy.take(sent(region, 20, common=20))
    assert copy.maintenance is not None

    copy.maintenance.collect()

    assert len(names_at(disk, B)) == 4
    assert len(manifests(disk.list(B))) <= 2
