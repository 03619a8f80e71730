"""One contract for both disks, and what MemoryDisk loses in a crash."""

import copy
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import Folder, MemoryDisk, MemoryStore
from metasrv_base.errors import Conflict, NotFound


@pytest.fixture(params=["local", "memory"])
def disk_and_folder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Disk, str]:
    disk: Disk = LocalDisk() if request.param == "local" else MemoryDisk(MemoryStore())
    folder = str(tmp_path / "one" / "two")
    disk.make_folder(folder)
    return disk, folder


def test_given_a_file_when_appended_then_any_part_can_be_read(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    file = disk.create(f"{folder}/f")
    file.append(b"hello ")
    file.append(b"world")
    file.sync()
    file.close()

    assert disk.size(f"{folder}/f") == 11
    assert disk.read(f"{folder}/f", 6, 3) == b"wor"
    assert disk.read(f"{folder}/f", 6, 100) == b"world"
    assert disk.read(f"{folder}/f", 11, 1) == b""
    disk.sync_file(f"{folder}/f")
    disk.sync_folder(folder)


def test_given_a_file_when_copied_then_the_copy_has_its_bytes_and_no_name_is_replaced(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    file, data = disk.create(f"{folder}/f"), bytes(range(256)) * 1_000
    file.append(data)
    file.close()

    crc32 = disk.copy(f"{folder}/f", f"{folder}/g")

    assert disk.read(f"{folder}/g", 0, len(data) + 1) == data
    assert crc32 == zlib.crc32(data)
    with pytest.raises(Conflict):
        disk.copy(f"{folder}/f", f"{folder}/g")
    with pytest.raises(NotFound):
        disk.copy(f"{folder}/none", f"{folder}/h")
    assert disk.list(folder) == ["f", "g"]


def test_given_a_copy_when_the_power_is_lost_then_its_bytes_are_there_once_its_name_is() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    file = disk.create("/disk/f")
    file.append(b"hello")
    file.sync()

    disk.copy("/disk/f", "/disk/g")
    disk.sync_folder("/disk")

    assert {name: inode.synced for name, inode in store.durable.items()} == {
        "/disk/f": 5,
        "/disk/g": 5,
    }


def test_given_a_name_when_taken_then_create_and_rename_refuse_it(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    disk.create(f"{folder}/a").close()
    disk.create(f"{folder}/b").close()

    with pytest.raises(Conflict):
        disk.create(f"{folder}/a")
    with pytest.raises(Conflict):
        disk.rename(f"{folder}/a", f"{folder}/b")
    disk.rename(f"{folder}/a", f"{folder}/c")

    assert disk.list(folder) == ["b", "c"]


def test_given_folders_when_listed_then_files_and_folders_show_in_order(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    disk.make_folder(f"{folder}/z")
    disk.make_folder(f"{folder}/z")
    disk.create(f"{folder}/z/inner").close()
    disk.create(f"{folder}/a").close()

    assert disk.list(folder) == ["a", "z"]
    disk.remove_tree(f"{folder}/z")
    disk.remove_tree(f"{folder}/z")
    disk.remove(f"{folder}/a")
    assert disk.list(folder) == []


def test_given_a_folder_when_moved_then_all_below_it_goes_and_no_folder_is_replaced(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    for name in ("a/deep", "b", "into"):
        disk.make_folder(f"{folder}/{name}")
    disk.create(f"{folder}/a/deep/f").close()

    with pytest.raises(Conflict):
        disk.move_folder(f"{folder}/a", f"{folder}/b")
    with pytest.raises(NotFound):
        disk.move_folder(f"{folder}/none", f"{folder}/into/a")
    with pytest.raises(NotFound):
        disk.move_folder(f"{folder}/a", f"{folder}/nowhere/a")
    disk.move_folder(f"{folder}/a", f"{folder}/into/a")

    assert disk.list(folder) == ["b", "into"]
    assert disk.walk(f"{folder}/into") == ["a/", "a/deep/", "a/deep/f"]


@pytest.mark.parametrize("synced", [None, "/disk/one", "/disk/two"])
def test_given_a_moved_folder_when_the_power_is_lost_then_it_is_whole_in_one_place(
    synced: str | None,
) -> None:
    """A sync of either folder above it is enough: a file system logs a rename as one change."""
    store = MemoryStore()
    disk = MemoryDisk(store)
    for name in ("one/a", "two"):
        disk.make_folder(f"/disk/{name}")
    disk.create("/disk/one/a/f").close()
    disk.sync_folder("/disk/one/a")

    disk.move_folder("/disk/one/a", "/disk/two/a")
    if synced is not None:
        disk.sync_folder(synced)
    store.crash()

    place = "one" if synced is None else "two"
    assert disk.walk("/disk") == sorted(["one/", f"{place}/a/", f"{place}/a/f", "two/"])


def test_given_nothing_when_asked_for_then_it_is_not_found(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder
    none = f"{folder}/none"

    for ask in (disk.size, disk.list, disk.remove, disk.sync_file):
        with pytest.raises(NotFound):
            ask(none)
    with pytest.raises(NotFound):
        disk.read(none, 0, 1)
    with pytest.raises(NotFound):
        disk.rename(none, f"{folder}/other")
    with pytest.raises(NotFound):
        disk.create(f"{none}/below")


def test_given_threads_when_each_makes_and_removes_names_then_none_disturbs_another(
    disk_and_folder: tuple[Disk, str],
) -> None:
    disk, folder = disk_and_folder

    def use(number: int) -> list[str]:
        """In a folder of its own, and in one of all."""
        own = f"{folder}/{number}"
        for at in range(20):
            disk.make_folder(f"{own}/{at}")
            disk.create(f"{own}/{at}/f").close()
            disk.rename(f"{own}/{at}/f", f"{folder}/{number}-{at}")
            disk.sync_folder(folder)
            if at % 2:
                disk.remove(f"{folder}/{number}-{at}")
                disk.remove_tree(f"{own}/{at}")
        return disk.list(own)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(use, range(8)))
    finally:
        sys.setswitchinterval(interval)

    even = range(0, 20, 2)
    assert found == [sorted(map(str, even))] * 8
    files = [f"{number}-{at}" for number in range(8) for at in even]
    assert disk.list(folder) == sorted([*map(str, range(8)), *files])


def test_given_unsynced_bytes_when_the_power_goes_then_they_are_gone() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    file = disk.create("/disk/f")
    file.append(b"kept")
    file.sync()
    disk.sync_folder("/disk")
    file.append(b" lost")

    store.crash()

    assert disk.read("/disk/f", 0, 100) == b"kept"


def test_given_an_unsynced_folder_when_the_power_goes_then_its_names_are_as_before() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    disk.create("/disk/old").sync()
    disk.sync_folder("/disk")
    disk.create("/disk/new").sync()
    disk.remove("/disk/old")

    store.crash()

    assert disk.list("/disk") == ["old"]


def test_given_a_kinder_device_when_the_power_goes_then_a_part_of_the_tail_survives() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    disk.create("/disk/f").append(b"abcdef")

    store.crash(kept_bytes=2, kept_names=True)

    assert disk.read("/disk/f", 0, 100) == b"ab"


def test_given_a_copy_of_a_store_when_either_changes_then_the_other_is_as_it_was() -> None:
    store = MemoryStore()
    MemoryDisk(store).make_folder("/disk/one")
    MemoryDisk(store).create("/disk/f").append(b"abc")
    twin = copy.deepcopy(store)

    MemoryDisk(store).remove("/disk/f")
    MemoryDisk(twin).sync_folder("/disk")
    twin.crash(2)

    assert MemoryDisk(store).list("/disk") == ["one"]
    assert MemoryDisk(twin).list("/disk") == ["f", "one"]
    assert MemoryDisk(twin).read("/disk/f", 0, 9) == b"ab"


def test_given_a_folder_that_nobody_synced_when_the_power_goes_then_all_below_it_is_gone() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    store.folders["/disk/new"] = Folder()  # made, and the folder above is not synced
    disk.create("/disk/new/f").sync()
    disk.sync_folder("/disk/new")

    store.crash()

    assert disk.list("/disk") == []
    with pytest.raises(NotFound):
        disk.size("/disk/new/f")


def test_given_a_folder_made_again_when_synced_then_what_was_in_the_old_one_is_gone() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk/f")
    disk.create("/disk/f/old").sync()
    disk.sync_folder("/disk/f")
    disk.remove_tree("/disk/f")
    disk.make_folder("/disk/f")

    store.crash()

    assert disk.list("/disk/f") == []


def test_given_a_tree_whose_removal_was_not_synced_when_the_power_goes_then_it_is_back() -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk/f")
    disk.create("/disk/f/old").sync()
    disk.sync_folder("/disk/f")
    store.remove_tree("/disk/f")

    store.crash()

    assert disk.list("/disk/f") == ["old"]


def test_given_a_torn_write_when_the_power_goes_then_a_later_part_may_survive_an_earlier_one() -> (
    None
):
    seen = set()
    for seed in range(200):
        store = MemoryStore()
        disk = MemoryDisk(store)
        for name in ("/a", "/b"):
            file = disk.create(name)
            file.append(b"synced ")
            file.sync()
            file.append(b"one two")
        disk.sync_folder("/")
        store.crash(torn=seed)
        a, b = (disk.read(name, 0, 100) for name in ("/a", "/b"))
        assert a.startswith(b"synced ")
        seen |= {("hole", b"\0" in a and a.endswith(b"two")), ("first file lost", len(a) < len(b))}

    assert {("hole", True), ("first file lost", True)} <= seen
