"""A disk in memory that keeps after a crash exactly what was synced, and can be stopped anywhere.

A sync whose hook raises Unknown has failed as Linux does it: the bytes stay in the cache, where
reads see them, and the device never has them, although a later sync by another descriptor succeeds.

`MemoryStore` is the medium; each process that uses it has a `MemoryDisk` of its own, whose hook is
called before every operation with (operation, path): a test raises there to stop that process
between two operations, or lets another process run in the meantime.
"""

import copy
import posixpath
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from dataplane.region.disk.disk import make_durable, write_file
from metasrv_base.errors import Conflict, NotFound, Unknown

T = TypeVar("T")
Hook = Callable[[str, str], None]


def no_hook(operation: str, path: str) -> None:
    """Does nothing."""


@dataclass
class Inode:
    data: bytearray = field(default_factory=bytearray)
    synced: int = 0
    """Bytes of `data` that survive a crash; files only grow."""
    dropped: list[slice] = field(default_factory=list)
    """Parts of `data` whose sync has failed: they are in the cache alone, the device has holes."""

    @contextmanager
    def syncing(self) -> Iterator[None]:
        """The bytes are synced behind the block; one that raises Unknown is a sync that failed."""
        length = len(self.data)
        try:
            yield
        except Unknown:
            self.dropped.append(slice(self.synced, length))
            raise
        self.synced = length

    def on_device(self) -> bytearray:
        """The bytes that are read once they are not in the cache."""
        data = bytearray(self.data)
        for part in self.dropped:
            data[part] = bytes(part.stop - part.start)
        return data

    def drop_cache(self) -> None:
        self.data, self.dropped = self.on_device(), []


class Folder:
    """One folder: another of the same name, made later, is not the same."""


class MemoryStore:
    """Names and bytes as processes see them, and as a crash would leave them."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Makes each operation on names one step: threads share a disk. Hooks are called without
        it."""
        root = Folder()
        self.live: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}
        self.folders: dict[str, Folder] = {"/": root}
        self.durable_folders: dict[str, Folder] = {"/": root}
        """Their own names are on stable storage, in the folder above. What is below one that is
        not goes with it."""
        self.moved: list[tuple[str, str]] = []
        """Folders that were moved, with their new paths: a crash puts them back until a folder
        above is synced."""

    def __deepcopy__(self, memo: dict[int, object]) -> "MemoryStore":
        """A medium with the same on it, and a lock of its own."""
        twin = MemoryStore()
        with self.lock:
            held = {name: value for name, value in vars(self).items() if name != "lock"}
            vars(twin).update(copy.deepcopy(held, memo))
        return twin

    def crash(self, kept_bytes: int = 0, kept_names: bool = False, torn: int | None = None) -> None:
        """Power loss. The device may have kept some of what nobody synced.

        `kept_bytes`: how much of each file's unsynced tail survives; `kept_names`: whether names
        made or removed since the last sync of their folder survive. `torn`: a seed. It draws for
        each file whether its unsynced tail survives whole, in part, not at all, or with a hole:
        the device wrote a later sector and not an earlier one, of the same file or of another.
        """
        names = self.live if kept_names else self.durable
        folders = dict(self.folders if kept_names else self.durable_folders)
        for path in sorted(folders, key=len):
            if posixpath.dirname(path) not in folders:
                del folders[path]
        survivors = {
            path: inode for path, inode in names.items() if posixpath.dirname(path) in folders
        }
        draw = None if torn is None else Random(f"{torn} {sorted(survivors)}")
        copies = {id(inode): _after(inode, kept_bytes, draw) for inode in survivors.values()}
        self.live = {path: copies[id(inode)] for path, inode in survivors.items()}
        self.durable = dict(self.live)
        self.folders, self.durable_folders = folders, dict(folders)
        self.moved = []

    def inode(self, path: str) -> Inode:
        if path not in self.live:
            raise NotFound("not-found", path=path)
        return self.live[path]

    def remove_tree(self, path: str) -> None:
        """A crash brings it back, until the folder above is synced."""
        if path in self.folders:
            drop_below(self.live, path)
            drop_below(self.folders, path)
            del self.folders[path]

    def move_folder(self, source: str, target: str) -> None:
        move_below(self.live, source, target)
        move_below(self.folders, source, target)
        self.moved.append((source, target))

    def sync_folder(self, path: str) -> None:
        """Names in the folder become durable as they are; of a folder that is gone, or another by
        now, all that was below it goes."""
        for move in list(self.moved):
            if path in map(posixpath.dirname, move):
                move_below(self.durable, *move)
                move_below(self.durable_folders, *move)
                self.moved.remove(move)
        for name, folder in _in(path, self.durable_folders).items():
            if self.folders.get(name) is not folder:
                drop_below(self.durable, name)
                drop_below(self.durable_folders, name)
                del self.durable_folders[name]
        self.durable_folders |= _in(path, self.folders)
        for name in _in(path, self.durable):
            del self.durable[name]
        self.durable |= _in(path, self.live)


def _after(inode: Inode, kept_bytes: int, draw: Random | None) -> Inode:
    """The bytes of a file after a crash."""
    device = inode.on_device()
    tail = bytes(device[inode.synced :])
    tail = tail[:kept_bytes] if draw is None else _torn(tail, draw)
    data = device[: inode.synced] + tail
    return Inode(data, len(data))


def _torn(tail: bytes, draw: Random) -> bytes:
    """A hole reads as zeros: the file's length was written, and that sector was not."""
    begin, end = sorted((draw.randint(0, len(tail)), draw.randint(0, len(tail))))
    hole = tail[:begin] + bytes(end - begin) + tail[end:]
    return draw.choice([b"", tail[:end], tail, hole, hole])


def _in(folder: str, names: Mapping[str, T]) -> dict[str, T]:
    """The entries right in *folder*."""
    return {
        name: held
        for name, held in names.items()
        if name != "/" and posixpath.dirname(name) == folder
    }


def drop_below(names: dict[str, T], folder: str) -> None:
    for name in [name for name in names if name.startswith(folder + "/")]:
        del names[name]


def move_below(names: dict[str, T], folder: str, target: str) -> None:
    """Renames a folder, and all that is below it."""
    for name in [name for name in names if f"{name}/".startswith(f"{folder}/")]:
        names[target + name.removeprefix(folder)] = names.pop(name)


class MemoryFile:
    def __init__(self, inode: Inode, path: str, hook: Hook) -> None:
        self._inode = inode
        self._path = path
        self._hook = hook

    def append(self, data: bytes | memoryview) -> None:
        self._hook("append", self._path)
        self._inode.data += data

    def sync(self) -> None:
        with self._inode.syncing():
            self._hook("sync", self._path)

    def close(self) -> None:
        pass


class MemoryDisk:
    """One process's way to a `MemoryStore`."""

    def __init__(self, store: MemoryStore, hook: Hook = no_hook) -> None:
        self.store = store
        self._hook = hook

    def create(self, path: str) -> MemoryFile:
        self._hook("create", path)
        with self.store.lock:
            if posixpath.dirname(path) not in self.store.folders:
                raise NotFound("not-found", path=path)
            if path in self.store.live:
                raise Conflict("already-exists", path=path)
            inode = self.store.live[path] = Inode()
        return MemoryFile(inode, path, self._hook)

    def copy(self, source: str, target: str) -> int:
        data = self.read(source, 0, self.size(source))
        write_file(self, target, data)
        return zlib.crc32(data)

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._hook("read", path)
        return bytes(self.store.inode(path).data[offset : offset + length])

    def size(self, path: str) -> int:
        self._hook("size", path)
        return len(self.store.inode(path).data)

    def sync_file(self, path: str) -> None:
        inode = self.store.inode(path)
        with inode.syncing():
            self._hook("sync_file", path)
        inode.drop_cache()

    def sync_folder(self, path: str) -> None:
        self._hook("sync_folder", path)
        with self.store.lock:
            if path not in self.store.folders:
                raise NotFound("not-found", path=path)
            self.store.sync_folder(path)

    def rename(self, source: str, target: str) -> None:
        self._hook("rename", target)
        with self.store.lock:
            inode = self.store.inode(source)
            if target in self.store.live:
                raise Conflict("already-exists", path=target)
            del self.store.live[source]
            self.store.live[target] = inode

    def move_folder(self, source: str, target: str) -> None:
        self._hook("move_folder", target)
        with self.store.lock:
            if source not in self.store.folders:
                raise NotFound("not-found", path=source)
            if target in self.store.folders:
                raise Conflict("already-exists", path=target)
            if posixpath.dirname(target) not in self.store.folders:
                raise NotFound("not-found", path=target)
            self.store.move_folder(source, target)

    def walk(self, folder: str) -> list[str]:
        self._hook("list", folder)
        with self.store.lock:
            if folder not in self.store.folders:
                raise NotFound("not-found", path=folder)
            paths = [*self.store.live, *(f"{path}/" for path in self.store.folders)]
        below = (path.removeprefix(folder + "/") for path in paths if path.startswith(folder + "/"))
        return sorted(path for path in below if path)

    def list(self, folder: str) -> list[str]:
        self._hook("list", folder)
        with self.store.lock:
            if folder not in self.store.folders:
                raise NotFound("not-found", path=folder)
            paths = [*self.store.live, *self.store.folders]
        names = {posixpath.basename(path) for path in paths if posixpath.dirname(path) == folder}
        return sorted(names - {""})

    def remove(self, path: str) -> None:
        self._hook("remove", path)
        with self.store.lock:
            self.store.inode(path)
            del self.store.live[path]

    def make_folder(self, path: str) -> None:
        make_durable(path, self.store.folders.__contains__, self._make, self.sync_folder)

    def _make(self, path: str) -> None:
        self._hook("make_folder", path)
        with self.store.lock:
            self.store.folders.setdefault(path, Folder())

    def remove_tree(self, path: str) -> None:
        self._hook("remove_tree", path)
        with self.store.lock:
            self.store.remove_tree(path)
        parent = posixpath.dirname(path)
        if parent in self.store.folders:
            self.sync_folder(parent)
