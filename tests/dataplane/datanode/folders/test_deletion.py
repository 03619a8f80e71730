"""Orders to delete a folder: it must be the region's, whole, and where the node may delete."""

from pathlib import Path

import pytest

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.node.orders import DropRegion
from tests.dataplane.datanode.folders.folders import (
    REGION,
    PowerLossError,
    created,
    put,
    store_of,
)

OTHER = REGION + 1


def drop(root: str, region: int = REGION) -> DropRegion:
    return DropRegion(number=2, region_id=str(region), epoch=1, root=root)


def test_given_a_region_when_dropped_then_nothing_of_it_is_left() -> None:
    disk = MemoryDisk(MemoryStore())
    created(store_of(disk), "/n/r")
    put(disk, "/n/r/data/1-1-1.parquet")
    put(disk, "/n/r/attempts/p-1/0.parquet")

    store_of(disk).drop(drop("/n/r"))
    store_of(disk).drop(drop("/n/r"))

    with pytest.raises(NotFound):
        disk.list("/n/r")


@pytest.mark.parametrize(
    "file", ["data/photo.jpg", "data/1-1-1.parquet", "attempts/p/0.parquet", "wal-1-1-1"]
)
def test_given_a_folder_without_a_fence_when_dropped_then_it_stays(file: str) -> None:
    disk = MemoryDisk(MemoryStore())
    put(disk, f"/n/r/{file}")

    with pytest.raises(Refused):
        store_of(disk).drop(drop("/n/r"))

    assert disk.read(f"/n/r/{file}", 0, 100) == b"precious"


@pytest.mark.parametrize(
    "file", ["photo.jpg", "data/photo.jpg", "data/deep/1-1-1.parquet", "attempts/p/q/0.parquet"]
)
def test_given_a_strange_file_anywhere_when_dropped_then_it_is_listed_and_all_stays(
    file: str,
) -> None:
    disk = MemoryDisk(MemoryStore())
    created(store_of(disk), "/n/r")
    put(disk, f"/n/r/{file}")
    before = disk.walk("/n/r")

    with pytest.raises(Refused) as refusal:
        store_of(disk).drop(drop("/n/r"))

    assert file in str(refusal.value.facts["strangers"])
    assert disk.walk("/n/r") == before


def test_given_a_folder_of_another_region_when_dropped_then_it_stays() -> None:
    disk = MemoryDisk(MemoryStore())
    created(store_of(disk), "/n/r", OTHER)

    with pytest.raises(Refused) as refusal:
        store_of(disk).drop(drop("/n/r"))

    assert refusal.value.facts["regions"] == [OTHER]
    assert disk.walk("/n/r")


def test_given_a_folder_elsewhere_when_dropped_then_only_below_shared_roots() -> None:
    disk = MemoryDisk(MemoryStore())
    created(store_of(disk, "/shared/other"), "/shared/other/r")
    elsewhere = drop("/shared/other/r")

    for refusing in (store_of(disk), store_of(disk, "/n", "/share"), store_of(disk, "/n", "/x")):
        with pytest.raises(Refused) as refusal:
            refusing.drop(elsewhere)
        assert "/n" in str(refusal.value.facts["allowed"])
    assert disk.walk("/shared/other/r")
    store_of(disk, "/n", "/shared").drop(elsewhere)

    with pytest.raises(NotFound):
        disk.walk("/shared/other/r")


def test_given_a_power_loss_anywhere_in_a_deletion_when_dropped_again_then_it_is_done() -> None:
    for operations in range(100):
        left = operations

        def lose(operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise PowerLossError

        media = MemoryStore()
        created(store_of(MemoryDisk(media)), "/n/r")
        put(MemoryDisk(media), "/n/r/data/1-1-1.parquet")
        try:
            store_of(MemoryDisk(media, lose)).drop(drop("/n/r"))
        except PowerLossError:
            media.crash()
            store_of(MemoryDisk(media)).drop(drop("/n/r"))
            with pytest.raises(NotFound):
                MemoryDisk(media).list("/n/r")
        else:
            assert operations > 5
            return
    pytest.fail("the deletion never ended")


def test_given_a_creation_that_was_cut_when_dropped_then_torn_fences_go() -> None:
    disk = MemoryDisk(MemoryStore())
    put(disk, "/n/r/fence-1-1", b'{"format"')
    disk.make_folder("/n/r/data")

    store_of(disk).drop(drop("/n/r"))

    with pytest.raises(NotFound):
        disk.list("/n/r")


def test_given_a_link_when_dropped_then_what_it_names_is_not_looked_at(tmp_path: Path) -> None:
    root = f"{tmp_path}/n/r"
    created(store_of(LocalDisk(), f"{tmp_path}/n"), root)
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "1-1-1.parquet").write_text("x")
    (Path(root) / "attempts").symlink_to(photos)

    with pytest.raises(Refused) as refusal:
        store_of(LocalDisk(), f"{tmp_path}/n").drop(drop(root))

    assert refusal.value.facts["strangers"] == ["attempts"]
    assert (photos / "1-1-1.parquet").exists()
