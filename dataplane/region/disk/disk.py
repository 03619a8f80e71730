"""The port to files: everything a region does to storage, one operation at a time.

Paths are absolute text. Nothing is buffered: what `append` was given is seen by every later `read`,
also from another process, and survives a power loss only after `sync` of the file and, for the name
to survive, `sync_folder` of its folder (docs/protocols.md P5: the file system is linearizable).

Errors: `NotFound` (no such file or folder), `Conflict` (the name is taken), `Unavailable`
`storage-full` (nothing was written), `Unavailable` `not-ready` (could not read), `Unknown` (a write
or sync failed: what is on disk is not known, and trying again proves nothing).
"""

import posixpath
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Protocol

from metasrv_base.errors import MetaError


class AppendFile(Protocol):
    """A file that this process created and alone appends to."""

    def append(self, data: bytes | memoryview) -> None:
        """All of `data` at the end, or an error after which the tail of the file is not known."""
        ...

    def sync(self) -> None:
        """The file's bytes are on stable storage (fdatasync)."""
        ...

    def close(self) -> None: ...


class Disk(Protocol):
    """Synchronous on purpose: callers run a region in a thread of their own."""

    def create(self, path: str) -> AppendFile:
        """A new empty file (O_EXCL)."""
        ...

    def copy(self, source: str, target: str) -> int:
        """A new file (O_EXCL) with the bytes that *source* has, on stable storage. Returns the
        crc32 of what was made."""
        ...

    def read(self, path: str, offset: int, length: int) -> bytes:
        """Reads at most `length` bytes; fewer only at the end of the file."""
        ...

    def size(self, path: str) -> int: ...

    def sync_file(self, path: str) -> None:
        """Bytes that somebody else wrote are on stable storage, and reads see those that are: of a
        sync that failed before, in whatever process, some may be gone."""
        ...

    def sync_folder(self, path: str) -> None:
        """Names made, removed or renamed in the folder are on stable storage."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Within one folder; never replaces a target."""
        ...

    def move_folder(self, source: str, target: str) -> None:
        """A folder with all below it, on one file system; never replaces a target. One step, also
        across a crash: as soon as one of the two folders above is synced, both have changed."""
        ...

    def walk(self, folder: str) -> list[str]:
        """Everything below a folder, as paths relative to it, sorted; those of folders end in `/`.
        A link is listed like a file and never followed."""
        ...

    def list(self, folder: str) -> list[str]:
        """Names in the folder, files and folders, sorted."""
        ...

    def remove(self, path: str) -> None: ...

    def make_folder(self, path: str) -> None:
        """The folder and its parents, on stable storage on return; one that exists is left."""
        ...

    def remove_tree(self, path: str) -> None:
        """A folder and all below it; one that does not exist is left so."""
        ...


def write_file(disk: Disk, path: str, data: bytes) -> None:
    """Makes a file of these bytes, which are on stable storage on return; the caller syncs the
    folder. Of one that fails nothing stays where that can be helped: a full disk needs the room."""
    file = disk.create(path)
    try:
        with closing(file):
            file.append(data)
            file.sync()
    except MetaError:
        with suppress(MetaError):
            disk.remove(path)
        raise


def make_durable(
    path: str,
    exists: Callable[[str], bool],
    make: Callable[[str], None],
    sync: Callable[[str], None],
) -> None:
    """Makes a folder and its parents; all of them are on stable storage on return.

    Each is made in a folder that is durable itself. One that is there may have been made by a
    process that died before it had synced the folder above: so that is synced first. By induction
    a folder that has anything in it is durable.
    """
    parent = posixpath.dirname(path)
    if not exists(path):
        make_durable(parent, exists, make, sync)
        make(path)
    sync(parent)
