"""The machines' disks, reached by every process: what was synced survives a power loss of its
machine, and a process can die between any two operations."""

import zlib
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from dataplane.region.disk.disk import AppendFile
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Unavailable, Unknown
from tests.sim.loop import SimLoop


class DiedError(Exception):
    """The process is gone: what it was about to do to its disk is not done."""


class FolderWatcher(Protocol):
    """Is told of folders once they have been moved or removed, whoever did it."""

    def moved(self, source: str, target: str) -> None: ...
    def removed(self, path: str) -> None: ...
    def lost(self, machine: str) -> None: ...


@dataclass
class Disks:
    """By machine. A path begins with its name: `/dn-1/...`."""

    stores: dict[str, MemoryStore] = field(default_factory=dict)
    lost_roots: set[str] = field(default_factory=set)
    """Roots of copies that were on disks which were lost."""
    watcher: FolderWatcher | None = None
    inputs: dict[str, pa.Table] = field(default_factory=dict)
    """Files of users that jobs load, by path."""

    def store(self, path: str) -> MemoryStore:
        machine = path.split("/")[1]
        if machine not in self.stores:
            self.stores[machine] = MemoryStore()
        return self.stores[machine]

    def lose(self, path: str, roots: Set[str]) -> None:
        """The machine of *path* has an empty disk, and the copies of *roots* are gone."""
        machine = path.split("/")[1]
        self.stores.pop(machine, None)  # none: it was lost before, and not used since
        self.lost_roots |= roots
        if self.watcher is not None:
            self.watcher.lost(machine)


@dataclass
class ProcessDisk:
    """Implements dataplane.region.disk.disk.Disk for one process."""

    disks: Disks
    loop: SimLoop
    node: str
    dies_in: int | None = None
    """Operations that change a disk until the process dies; None: it lives on."""
    on_death: Callable[[], None] = lambda: None
    on_failed_sync: Callable[[], None] = lambda: None
    full: bool = False
    syncs_fail: int = 0
    """Syncs of files that fail next, as Linux has it: what they were to write is in the cache
    alone, and later syncs succeed."""

    def _hook(self, operation: str, path: str) -> None:
        if self.loop.is_dead(self.node):
            raise DiedError
        if operation in ("read", "size", "list"):
            return
        if self.full and operation in ("append", "create"):
            raise Unavailable("storage-full", path=path)
        if self.syncs_fail and operation in ("sync", "sync_file"):
            self.syncs_fail -= 1
            self.on_failed_sync()
            raise Unknown(path=path)
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                self.on_death()
                raise DiedError

    def _at(self, path: str) -> MemoryDisk:
        return MemoryDisk(self.disks.store(path), self._hook)

    def create(self, path: str) -> AppendFile:
        return self._at(path).create(path)

    def copy(self, source: str, target: str) -> int:
        """The two may belong to different nodes."""
        data = self.read(source, 0, self.size(source))
        file = self.create(target)
        file.append(data)
        file.sync()
        file.close()
        return zlib.crc32(data)

    def read(self, path: str, offset: int, length: int) -> bytes:
        return self._at(path).read(path, offset, length)

    def size(self, path: str) -> int:
        return self._at(path).size(path)

    def sync_file(self, path: str) -> None:
        self._at(path).sync_file(path)

    def sync_folder(self, path: str) -> None:
        self._at(path).sync_folder(path)

    def rename(self, source: str, target: str) -> None:
        self._at(source).rename(source, target)

    def move_folder(self, source: str, target: str) -> None:
        self._at(source).move_folder(source, target)
        if self.disks.watcher is not None:
            self.disks.watcher.moved(source, target)

    def walk(self, folder: str) -> list[str]:
        return self._at(folder).walk(folder)

    def list(self, folder: str) -> list[str]:
        return self._at(folder).list(folder)

    def remove(self, path: str) -> None:
        self._at(path).remove(path)

    def make_folder(self, path: str) -> None:
        self._at(path).make_folder(path)

    def remove_tree(self, path: str) -> None:
        self._at(path).remove_tree(path)
        if self.disks.watcher is not None:
            self.disks.watcher.removed(path)
