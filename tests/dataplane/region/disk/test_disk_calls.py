"""LocalDisk asks the system for what MemoryDisk demands: the same changes and syncs, in one order.

What a test on MemoryDisk proves of a crash holds for a real disk only if both sync the same.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dataplane.region.disk import local_disk
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore

Done = list[tuple[str, str]]
CHANGES = {
    "append",
    "create",
    "make_folder",
    "remove",
    "remove_tree",
    "rename",
    "sync",
    "sync_file",
    "sync_folder",
}


class RecordingOs:
    """The module `os`: calls that change the disk are noted in the words of the Disk port."""

    def __init__(self) -> None:
        self.done: Done = []
        self._paths: dict[int, str] = {}
        self._linked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        descriptor = os.open(path, flags, mode)
        self._paths[descriptor] = path
        if flags & os.O_CREAT:
            self.done.append(("create", path))
        return descriptor

    def write(self, descriptor: int, data: bytes) -> int:
        self.done.append(("append", self._paths[descriptor]))
        return os.write(descriptor, data)

    def fdatasync(self, descriptor: int) -> None:
        self.done.append(("sync", self._paths[descriptor]))
        os.fdatasync(descriptor)

    def fsync(self, descriptor: int) -> None:
        path = self._paths[descriptor]
        self.done.append(("sync_folder" if os.path.isdir(path) else "sync_file", path))
        os.fsync(descriptor)

    def link(self, source: str, target: str) -> None:
        self._linked.add(source)
        self.done.append(("rename", target))
        os.link(source, target)

    def unlink(self, path: str) -> None:
        if path not in self._linked:
            self.done.append(("remove", path))
        os.unlink(path)

    def makedirs(self, path: str, mode: int, exist_ok: bool) -> None:
        self.done.append(("make_folder", path))
        os.mkdir(path, mode)  # its parents are there, or nobody has synced them

    def rmtree(self, path: str) -> None:
        self.done.append(("remove_tree", path))
        shutil.rmtree(path)


def in_memory(act: Callable[[Disk, str], None], folder: str) -> Done:
    store, done = MemoryStore(), Done()
    MemoryDisk(store).make_folder(folder)

    def hook(operation: str, path: str) -> None:
        if operation in CHANGES:
            done.append((operation, path))

    act(MemoryDisk(store, hook), folder)
    return done


def by_the_system(
    act: Callable[[Disk, str], None], folder: str, monkeypatch: pytest.MonkeyPatch
) -> Done:
    calls = RecordingOs()
    monkeypatch.setattr(local_disk, "os", calls)
    monkeypatch.setattr(local_disk, "shutil", calls)
    act(LocalDisk(), folder)
    return calls.done


def makes_folders(disk: Disk, folder: str) -> None:
    disk.make_folder(f"{folder}/one/two/three")
    disk.make_folder(f"{folder}/one/two")
    disk.make_folder(f"{folder}/one/two/four")


def writes(disk: Disk, folder: str) -> None:
    file = disk.create(f"{folder}/f")
    file.append(b"one")
    file.append(b"two")
    file.sync()
    file.close()
    disk.sync_folder(folder)
    disk.sync_file(f"{folder}/f")


def renames(disk: Disk, folder: str) -> None:
    file = disk.create(f"{folder}/new")
    file.close()
    disk.rename(f"{folder}/new", f"{folder}/f")
    disk.sync_folder(folder)


def removes(disk: Disk, folder: str) -> None:
    disk.make_folder(f"{folder}/gone/below")
    disk.create(f"{folder}/f").close()
    disk.remove(f"{folder}/f")
    disk.remove_tree(f"{folder}/gone")


@pytest.mark.parametrize("act", [makes_folders, writes, renames, removes])
def test_given_the_same_work_when_recorded_then_both_disks_change_and_sync_the_same(
    act: Callable[[Disk, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)

    real = by_the_system(act, folder, monkeypatch)

    assert real == in_memory(act, folder)
    assert any(operation.startswith("sync") for operation, _ in real)


def test_given_an_unsynced_folder_when_another_process_makes_one_below_then_both_stay() -> None:
    """Found by MemoryDisk: LocalDisk took a parent that was there for one that is durable."""
    store = MemoryStore()
    MemoryDisk(store).make_folder("/node")

    class Died(Exception):
        """The process ends here."""

    def dies(operation: str, path: str) -> None:
        if operation == "sync_folder" and "/node/regions" in store.folders:
            raise Died

    with pytest.raises(Died):
        MemoryDisk(store, dies).make_folder("/node/regions")
    disk = MemoryDisk(store)
    disk.make_folder("/node/regions/1")
    disk.create("/node/regions/1/f").sync()
    disk.sync_folder("/node/regions/1")

    store.crash()

    assert disk.list("/node/regions/1") == ["f"]
