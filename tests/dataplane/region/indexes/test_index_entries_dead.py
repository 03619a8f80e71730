"""Dead indexes: gone in one manifest, their files after the look, and never taken again."""

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.format.families import ROWS
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import NotFound, Refused
from tests.dataplane.region.borrowed import bring
from tests.dataplane.region.entries import (
    FIRST,
    INDEX,
    OTHER,
    SCHEMA,
    entries_of,
    mixed,
    new_region,
    refusal,
    write_mixed,
)
from tests.dataplane.region.format.regions import region
from tests.dataplane.region.power_loss import DEVICES, FAST, Life, cut_short
from tests.dataplane.region.rig import SPEC, A, B, C, contents, order, place

__all__ = ["region"]  # the fixture
DROPPED = RegionSchema(3, 2, SPEC.columns, frozenset(), frozenset({INDEX}))


def names_of(disk: MemoryDisk, root: str) -> list[str]:
    try:
        return disk.list(f"{root}/data")
    except NotFound:
        return []


def test_given_an_index_when_dropped_then_it_is_gone_in_one_manifest_with_its_files(
    region: Region,
) -> None:
    write_mixed(region, "s-2", {(ROWS, b"c"): (3, "c"), (INDEX, b"c-c"): b"c"})

    number = region.manifest.number
    region.set_schema(DROPPED)
    region.maintenance.sweep()

    assert region.manifest.number == number + 1
    assert INDEX not in {file.family for file in region.manifest.files}
    disk, root = region.place.disk, region.place.root
    assert isinstance(disk, MemoryDisk)
    own = [file for file in region.manifest.files if file.root is None]
    assert len(names_of(disk, root)) == len(own)
    with pytest.raises(Refused):
        entries_of(region)
    assert refusal(region, mixed({(INDEX, b"k"): b"k"}), 3).facts["reason"] == (
        "the index was dropped"
    )
    region.maintenance.flush()
    assert {file.family for file in region.manifest.files} <= {ROWS, OTHER}
    assert len(entries_of(region, OTHER)) == 2
    assert contents(region).keys() == {b"a", b"b", b"c"}


def test_given_a_dropped_index_when_opened_anywhere_and_told_of_again_then_it_is_dead() -> None:
    disk = MemoryDisk(MemoryStore())
    first = new_region(disk)
    write_mixed(first, "s-1", FIRST)
    first.set_schema(DROPPED)

    second = Region.open(place(disk, B), order(2, A))
    third = Region.open(place(disk, C), order(3, A, B))

    for later in (second, third):
        assert INDEX in later.schema.dead
        assert INDEX not in later.borrowed().indexes
    third.set_schema(SCHEMA)
    with pytest.raises(Refused):
        entries_of(third)
    assert len(entries_of(third, OTHER)) == 2


def test_given_an_index_that_dies_while_a_job_brings_it_when_adopted_then_it_stays_dead() -> None:
    disk = MemoryDisk(MemoryStore())
    first = new_region(disk)
    write_mixed(first, "s-1", FIRST)
    first.maintenance.flush()
    region = Region.open(place(disk, B), order(2, A))
    files = bring(disk, region, "attempts/1")

    region.set_schema(DROPPED)
    region.file_ingest.adopt("p-1", "attempts/1", files)
    region.maintenance.sweep()

    assert {file.family for file in region.manifest.files} == {ROWS, OTHER}
    assert len(disk.list(f"{B}/attempts/1")) == 2, "the file of the dead index is gone"


def test_given_a_scan_of_an_index_when_it_is_dropped_then_its_files_stay_until_the_scan_ends() -> (
    None
):
    disk = MemoryDisk(MemoryStore())
    region = new_region(disk)
    write_mixed(region, "s-1", FIRST)
    region.maintenance.flush()
    scan = region.reader.scan_entries(INDEX)
    first = next(scan)

    region.set_schema(DROPPED)
    region.maintenance.sweep()
    assert len(names_of(disk, A)) == 3

    assert first.num_rows == 2
    assert list(scan) == []
    assert region.maintenance.sweep() == 1


def test_given_an_index_that_dies_in_a_merge_of_it_then_nothing_of_it_is_left() -> None:
    drop: list[Region] = []

    def on_create(operation: str, path: str) -> None:
        if operation == "create" and "data/" in path and drop:
            drop.pop().set_schema(DROPPED)

    disk = MemoryDisk(MemoryStore(), on_create)
    region = new_region(disk)
    for number in range(4):
        write_mixed(region, f"s-{number}", {(INDEX, b"%d" % number): b"k"})
        region.maintenance.flush()
    drop.append(region)

    region.maintenance.compact()

    assert region.manifest.files == ()
    assert names_of(disk, A) == []
    region.maintenance.compact()
    assert region.stopped is None


def test_given_an_index_that_dies_in_a_flush_of_it_then_rows_alone_are_left() -> None:
    drop: list[Region] = []

    def on_create(operation: str, path: str) -> None:
        if operation == "create" and "data/" in path and drop:
            drop.pop().set_schema(DROPPED)

    region = new_region(disk := MemoryDisk(MemoryStore(), on_create))
    write_mixed(region, "s-1", FIRST)
    drop.append(region)

    region.maintenance.flush()
    region.maintenance.sweep()

    assert sorted(file.family for file in region.manifest.files) == [ROWS, OTHER]
    assert len(names_of(disk, A)) == 2
    assert contents(region).keys() == {b"a", b"b"}


def made() -> MemoryStore:
    store = MemoryStore()
    region = new_region(MemoryDisk(store))
    write_mixed(region, "s-1", FIRST)
    region.maintenance.flush()
    return store


MADE = made()


def batch_and_drop(life: Life) -> None:
    region = Region.open(place(life.disk), order(1))
    write_mixed(
        region, "both", {(ROWS, b"c"): (3, "c"), (OTHER, b"3-c"): b"c", (INDEX, b"c"): b"c"}
    )
    life.acknowledged[b"c"] = (3, "c")
    region.maintenance.flush()
    life.floors.append(region.set_schema(DROPPED))
    region.maintenance.sweep()
    region.close()


@pytest.mark.parametrize(
    "device",
    [pytest.param(device, marks=pytest.mark.crash) for device in DEVICES if device != FAST]
    + [FAST],
)
@pytest.mark.slow
def test_given_power_loss_anywhere_then_batches_are_whole_and_a_dropped_index_stays_dropped(
    device: str,
) -> None:
    lives, seen = 0, set()

    for life, store in cut_short(MADE, device, batch_and_drop):
        lives += 1
        again = Region.open(place(MemoryDisk(store)), order(1))
        rows, others = contents(again), entries_of(again, OTHER)
        assert (b"c" in rows) == (b"3-c" in others), "one batch, whole or not at all"
        assert life.acknowledged.keys() <= rows.keys()
        is_dropped = INDEX in again.schema.dead
        assert is_dropped or not life.floors
        if not is_dropped:
            assert (b"c" in entries_of(again)) == (b"c" in rows)
        again.maintenance.collect()
        assert len(names_of(MemoryDisk(store), A)) == len(again.manifest.files)
        seen.add((b"c" in rows, is_dropped))

    assert seen == {(False, False), (True, False), (True, True)}
    assert lives >= 40
