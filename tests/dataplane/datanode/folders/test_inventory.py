"""Inventories of disks on which one folder cannot be read: the others are listed as ever."""

import os
from pathlib import Path

import pytest

from dataplane.datanode.folders.inventory import FolderPage, inventory
from dataplane.datanode.folders.quarantine import Quarantine, parsed
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.format.names import Opening
from metasrv_base.errors import Unavailable
from metasrv_base.wire.model import INT64_END
from tests.dataplane.datanode.folders.folders import created, put, store_of

FIRST, LAST = 1024 << 32, INT64_END - 1
REGIONS = [FIRST + number for number in range(3)]
BAD, HELD = f"/n/regions/{FIRST}-1", f"/n/quarantine/{FIRST}-1@7"


class BadSector(MemoryDisk):
    """A disk that cannot read what begins with *bad*."""

    def __init__(self, media: MemoryStore, bad: str) -> None:
        super().__init__(media)
        self.bad = bad

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._must_be_sound(path)
        return super().read(path, offset, length)

    def size(self, path: str) -> int:
        self._must_be_sound(path)
        return super().size(path)

    def walk(self, folder: str) -> list[str]:
        self._must_be_sound(folder)
        return super().walk(folder)

    def list(self, folder: str) -> list[str]:
        self._must_be_sound(folder)
        return super().list(folder)

    def _must_be_sound(self, path: str) -> None:
        if path.startswith(self.bad):
            raise Unavailable("not-ready", path=path, errno="EIO")


def made(*, is_held: bool = False) -> MemoryStore:
    media = MemoryStore()
    disk = MemoryDisk(media)
    for region in REGIONS:
        created(store_of(disk), f"/n/regions/{region}-1", region)
    if is_held:
        Quarantine(disk, "/n").take(BAD, FIRST, Opening(1, 1), 7)
    return media


def errors(page: FolderPage) -> dict[int, str | None]:
    return {int(root.region_id): root.error for root in page.roots}


@pytest.mark.parametrize(
    ("bad", "fence_epoch"), [(BAD, 0), (f"{BAD}/fence-1-1", 1), (f"{BAD}/manifest-1-1-1", 1)]
)
def test_given_a_folder_that_cannot_be_read_when_listed_then_it_alone_has_the_error(
    bad: str, fence_epoch: int
) -> None:
    page = inventory(BadSector(made(), bad), "/n", 0, LAST)

    broken, *others = page.roots
    assert (broken.root, broken.fence_epoch) == (BAD, fence_epoch)
    assert broken.error is not None
    assert "EIO" in broken.error
    assert broken.manifest_epoch is None
    assert [(int(root.region_id), root.error) for root in others] == [
        (region, None) for region in REGIONS[1:]
    ]


@pytest.mark.parametrize(
    ("bad", "is_whole"), [(HELD, False), (f"{HELD}/fence-1-1", False), (f"{HELD}/data", True)]
)
def test_given_one_in_quarantine_that_cannot_be_read_then_it_alone_has_the_error(
    bad: str, is_whole: bool
) -> None:
    media = made(is_held=True)
    put(MemoryDisk(media), f"{HELD}/data/1-1-1.parquet")

    page = inventory(BadSector(media, bad), "/n", 0, LAST)

    (held,) = page.quarantined
    assert (held.path, held.at_ms, held.bytes, held.folder.root) == (HELD, 7, 0, BAD)
    assert (held.folder.error is None) is is_whole, "its size alone is not known"
    assert errors(page) == dict.fromkeys(REGIONS[1:])


def test_given_things_that_no_region_makes_on_a_real_disk_then_all_else_is_listed(
    tmp_path: Path,
) -> None:
    """A link to itself, a fence that is a folder, and numbers above any that the service makes."""
    root, names = str(tmp_path), [f"{FIRST + number}-1" for number in range(4)]
    regions, quarantine = tmp_path / "regions", tmp_path / "quarantine"
    created(store_of(LocalDisk(), root), f"{root}/regions/{names[0]}", FIRST)
    quarantine.mkdir()
    os.symlink(regions / names[1], regions / names[1])
    (regions / names[2] / "fence-1-1").mkdir(parents=True)
    (regions / names[3]).mkdir()
    (regions / names[3] / f"fence-{INT64_END}-1").touch()
    os.symlink(quarantine / f"{names[1]}@5", quarantine / f"{names[1]}@5")
    (quarantine / f"{names[0]}@{INT64_END}").mkdir()

    page = inventory(LocalDisk(), root, 0, LAST)

    found = errors(page)
    assert found.pop(FIRST) is None
    assert [error is not None for error in found.values()] == [True] * 3
    assert [held.folder.error is not None for held in page.quarantined] == [True]


def test_given_a_number_above_any_that_the_service_makes_then_it_is_no_name_in_quarantine() -> None:
    assert parsed(f"{FIRST}-1@{INT64_END - 1}") is not None
    assert parsed(f"{FIRST}-1@{INT64_END}") is None
    assert parsed(f"{INT64_END}-1@7") is None
