"""A disk in memory that keeps after a crash exactly what was synced, and can be stopped anywhere.

`MemoryStore` is the medium; each process that uses it has a `MemoryDisk` of its own, whose hook is
called before every operation with (operation, path): a test raises there to stop that process
between two operations, or lets another process run in the meantime.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field

from base.errors import Conflict, NotFound

Hook = Callable[[str, str], None]


def no_hook(operation: str, path: str) -> None:
    """Nobody wants to know."""


@dataclass
class Inode:
    data: bytearray = field(default_factory=bytearray)
    synced: int = 0
    """Bytes of `data` that survive a crash; files only grow."""


class MemoryStore:
    """Names and bytes as processes see them, and as a crash would leave them."""

    def __init__(self) -> None:
        self.live: dict[str, Inode] = {}
        self.durable: dict[str, Inode] = {}
        self.folders: set[str] = {"/"}

    def crash(self, kept_bytes: int = 0, kept_names: bool = False) -> None:
        """Power loss. The device may have kept some of what nobody synced.

        `kept_bytes`: how much of each file's unsynced tail survives; `kept_names`: whether names
        made or removed since the last sync of their folder survive.
        """
        survivors = self.live if kept_names else self.durable
        copies = {
            id(inode): Inode(bytearray(inode.data[: inode.synced + kept_bytes]), inode.synced)
            for inode in survivors.values()
        }
        for inode in copies.values():
            inode.synced = len(inode.data)
        self.live = {path: copies[id(inode)] for path, inode in survivors.items()}
        self.durable = dict(self.live)

    def inode(self, path: str) -> Inode:
        if path not in self.live:
            raise NotFound("not-found", path=path)
        return self.live[path]


class MemoryFile:
    def __init__(self, inode: Inode, path: str, hook: Hook) -> None:
        self._inode = inode
        self._path = path
        self._hook = hook

    def append(self, data: bytes) -> None:
        self._hook("append", self._path)
        self._inode.data += data

    def sync(self) -> None:
        self._hook("sync", self._path)
        self._inode.synced = len(self._inode.data)

    def close(self) -> None:
        pass


class MemoryDisk:
    """One process's way to a `MemoryStore`."""

    def __init__(self, store: MemoryStore, hook: Hook = no_hook) -> None:
        self.store = store
        self._hook = hook

    def create(self, path: str) -> MemoryFile:
        self._hook("create", path)
        if posixpath.dirname(path) not in self.store.folders:
            raise NotFound("not-found", path=path)
        if path in self.store.live:
            raise Conflict("already-exists", path=path)
        inode = self.store.live[path] = Inode()
        return MemoryFile(inode, path, self._hook)

    def copy(self, source: str, target: str) -> None:
        data = self.read(source, 0, self.size(source))
        file = self.create(target)
        file.append(data)
        file.sync()
        file.close()

    def read(self, path: str, offset: int, length: int) -> bytes:
        self._hook("read", path)
        return bytes(self.store.inode(path).data[offset : offset + length])

    def size(self, path: str) -> int:
        self._hook("size", path)
        return len(self.store.inode(path).data)

    def sync_file(self, path: str) -> None:
        self._hook("sync_file", path)
        inode = self.store.inode(path)
        inode.synced = len(inode.data)

    def sync_folder(self, path: str) -> None:
        self._hook("sync_folder", path)
        store = self.store
        for name in [name for name in list(store.durable) if posixpath.dirname(name) == path]:
            del store.durable[name]
        for name, inode in list(store.live.items()):
            if posixpath.dirname(name) == path:
                store.durable[name] = inode

    def rename(self, source: str, target: str) -> None:
        self._hook("rename", target)
        inode = self.store.inode(source)
        if target in self.store.live:
            raise Conflict("already-exists", path=target)
        del self.store.live[source]
        self.store.live[target] = inode

    def walk(self, folder: str) -> list[str]:
        self._hook("list", folder)
        if folder not in self.store.folders:
            raise NotFound("not-found", path=folder)
        known = [*self.store.live, *(f"{path}/" for path in self.store.folders)]
        below = (path.removeprefix(folder + "/") for path in known if path.startswith(folder + "/"))
        return sorted(path for path in below if path)

    def list(self, folder: str) -> list[str]:
        self._hook("list", folder)
        if folder not in self.store.folders:
            raise NotFound("not-found", path=folder)
        known = [*self.store.live, *self.store.folders]
        names = {posixpath.basename(path) for path in known if posixpath.dirname(path) == folder}
        return sorted(names - {""})

    def remove(self, path: str) -> None:
        self._hook("remove", path)
        self.store.inode(path)
        del self.store.live[path]

    def make_folder(self, path: str) -> None:
        self._hook("make_folder", path)
        while path not in self.store.folders:
            self.store.folders.add(path)
            path = posixpath.dirname(path)

    def remove_tree(self, path: str) -> None:
        self._hook("remove_tree", path)
        store = self.store
        for names in (store.live, store.durable):
            for name in [name for name in list(names) if name.startswith(path + "/")]:
                del names[name]
        store.folders -= {f for f in store.folders if f == path or f.startswith(path + "/")}
