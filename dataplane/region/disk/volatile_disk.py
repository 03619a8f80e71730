"""A disk whose files are in the memory of this process, but for the few that must outlive it.

It lies over another disk and belongs to one root. Names that are *kept* go to the disk below, and
so does whatever is outside the root; every other file is bytes of this process, never synced, and
gone with it. Whoever uses it sees one folder with the names of both.
"""

import posixpath
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dataplane.region.disk.disk import AppendFile, Disk, write_file
from metasrv_base.errors import Conflict, NotFound


@dataclass(frozen=True, slots=True)
class KeptNames:
    """The names, relative to the root, that are on the disk below."""

    is_kept: Callable[[str], bool]
    stays: Callable[[str], bool]
    """Whether a kept name is never removed while the region is open."""


class VolatileDisk:
    """Implements dataplane.region.disk.disk.Disk. Safe for threads."""

    def __init__(
        self, below: Disk, root: str, names: KeptNames, note: Callable[[int], None]
    ) -> None:
        """Keeps files in memory, and on *below* those with *names*. *note* is told the bytes of all
        files in memory, whenever they change."""
        self._below = below
        self._root = root
        self._names = names
        self._note = note
        self._lock = threading.Lock()
        self._files: dict[str, bytes | bytearray] = {}
        self._folders: set[str] = set()
        self._is_unsynced = False
        """Whether a kept name was made or removed since the root was synced."""
        self.bytes = 0

    def create(self, path: str) -> AppendFile:
        if not self._is_ours(path):
            self._changes(path)
            return self._below.create(path)
        with self._lock:
            if posixpath.dirname(path) not in {self._root, *self._folders}:
                raise NotFound("not-found", path=path)
            if path in self._files:
                raise Conflict("already-exists", path=path)
            self._files[path] = bytearray()
        return _File(self, path)

    def append(self, path: str, data: bytes | memoryview) -> None:
        """At the end of a file that is being written."""
        with self._lock:
            held = self._files[path]
            assert isinstance(held, bytearray), "a file that is closed does not grow"
            held += data
            self._count(len(data))

    def finish(self, path: str) -> None:
        """The file does not grow any more: it takes what it holds, and no spare room."""
        with self._lock:
            if path in self._files:
                self._files[path] = bytes(self._files[path])

    def copy(self, source: str, target: str) -> int:
        raise AssertionError("nothing is moved into a region in memory")

    def read(self, path: str, offset: int, length: int) -> bytes:
        held = self._files.get(path)
        if held is None:
            return self._below.read(path, offset, length)
        return bytes(held[offset : offset + length])

    def size(self, path: str) -> int:
        held = self._files.get(path)
        return self._below.size(path) if held is None else len(held)

    def sync_file(self, path: str) -> None:
        if path not in self._files:
            self._below.sync_file(path)

    def sync_folder(self, path: str) -> None:
        if path in self._folders:
            return
        if path != self._root:
            self._below.sync_folder(path)
        elif self._is_unsynced:
            self._below.sync_folder(path)
            self._is_unsynced = False

    def rename(self, source: str, target: str) -> None:
        if not self._is_ours(source):
            self._changes(target)
            self._below.rename(source, target)
            return
        with self._lock:
            if target in self._files:
                raise Conflict("already-exists", path=target)
            if source not in self._files:
                raise NotFound("not-found", path=source)
            self._files[target] = self._files.pop(source)

    def move_folder(self, source: str, target: str) -> None:
        raise AssertionError("no region moves folders")

    def walk(self, folder: str) -> list[str]:
        prefix = f"{folder}/"
        with self._lock:
            here = [*self._files, *(f"{path}/" for path in self._folders)]
        names = {path.removeprefix(prefix) for path in here if path.startswith(prefix)}
        return sorted(names.union(self._below.walk(folder)))

    def list(self, folder: str) -> list[str]:
        with self._lock:
            here = [*self._files, *self._folders]
            is_ours = folder in self._folders
        names = {posixpath.basename(path) for path in here if posixpath.dirname(path) == folder}
        try:
            return sorted(names.union(self._below.list(folder)))
        except NotFound:
            if not is_ours:
                raise
            return sorted(names)

    def remove(self, path: str) -> None:
        """The copy of it that was laid out goes too."""
        if not self._is_ours(path):
            if not self._names.stays(self._name(path)):
                self._changes(path)
                self._below.remove(path)
            return
        with self._lock:
            held = self._files.pop(path, None)
            self._count(-len(held or b""))
        if held is None:
            self._below.remove(path)
            return
        with suppress(NotFound):
            self._below.remove(path)

    def make_folder(self, path: str) -> None:
        if self._is_ours(path):
            with self._lock:
                self._folders.add(path)
        else:
            self._below.make_folder(path)

    def remove_tree(self, path: str) -> None:
        with self._lock:
            for name in [name for name in self._files if name.startswith(f"{path}/")]:
                self._count(-len(self._files.pop(name)))
            self._folders = {
                folder for folder in self._folders if not f"{folder}/".startswith(f"{path}/")
            }
        self._below.remove_tree(path)

    def lay_out(self, path: str) -> None:
        """Writes a file to the disk below, where other processes read it; durable there on return.
        Again: it is there. One that a job brought is there anyway."""
        held = self._files.get(path)
        if held is None:
            return
        self._below.make_folder(posixpath.dirname(path))
        try:
            if self._below.size(path) == len(held):
                return
            self._below.remove(path)  # a full disk has left a part of it
        except NotFound:
            pass
        write_file(self._below, path, bytes(held))
        self._below.sync_folder(posixpath.dirname(path))

    def give_up(self) -> None:
        """The region is closed. Whoever still reads keeps the files; nobody else counts them."""
        self._note(0)

    def _is_ours(self, path: str) -> bool:
        """Whether its bytes are in memory."""
        return path.startswith(f"{self._root}/") and not self._names.is_kept(self._name(path))

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self._root}/")

    def _changes(self, path: str) -> None:
        if posixpath.dirname(path) == self._root:
            self._is_unsynced = True

    def _count(self, more: int) -> None:
        """The lock is held."""
        self.bytes += more
        self._note(self.bytes)


class _File:
    """A file in memory that is being written. Implements AppendFile."""

    def __init__(self, disk: VolatileDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def append(self, data: bytes | memoryview) -> None:
        self._disk.append(self._path, data)

    def sync(self) -> None:
        """Nothing survives: there is nothing to wait for."""

    def close(self) -> None:
        self._disk.finish(self._path)
