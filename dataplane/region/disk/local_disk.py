"""The Disk port on a local file system, with operating system errors turned into ours."""

import errno
import os
import shutil
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Literal

from dataplane.region.disk.disk import make_durable
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable, Unknown

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The device is full, or what this user or process may take of it."""
NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors of a process or a machine without free descriptors: nothing was opened, so nothing was
done."""
_COPIED_AT_ONCE = 64 << 20
_LOOKED_AT_ONCE = 256 << 10
"""Bytes that stay in a processor's cache."""


@contextmanager
def translated(path: str, intent: Literal["read", "create", "write"]) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound("not-found", path=path) from error
    except FileExistsError as error:
        raise Conflict("already-exists", path=path) from error
    except OSError as error:
        code = errno.errorcode.get(error.errno or 0, "EIO")
        if intent == "read" or error.errno in NO_DESCRIPTORS:
            raise Unavailable("not-ready", path=path, errno=code) from error
        if intent == "create" and error.errno in NO_SPACE:
            raise storage_full(path, error) from error
        raise Unknown("outcome-unknown", path=path, errno=code) from error


def storage_full(path: str, error: OSError) -> Unavailable:
    """Says which disk, and how much a process like this one may still take of it, unless the disk
    cannot tell."""
    disk = folder = os.path.dirname(path)
    while not os.path.ismount(disk):
        disk = os.path.dirname(disk)
    facts: dict[str, object] = {"path": path, "disk": disk}
    with suppress(OSError):
        stats = os.statvfs(folder)
        facts["free_bytes"] = stats.f_bavail * stats.f_frsize
    return Unavailable("storage-full", **facts, limit=errno.errorcode[error.errno or 0])


class LocalFile:
    """An open descriptor in append mode.

    Once a sync has failed nothing is done with it any more: the kernel may have dropped the bytes
    and says so only once, so that a second sync would succeed for nothing.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._length = 0
        self._is_doubtful = False

    def append(self, data: bytes | memoryview) -> None:
        self._must_be_sound()
        self._is_doubtful = True
        with translated(self._path, "write"):
            try:
                self._write(data)
            except OSError as error:
                if error.errno not in NO_SPACE:
                    raise
                self._cut_back()
                self._is_doubtful = False
                raise storage_full(self._path, error) from error
        self._length += len(data)
        self._is_doubtful = False

    def sync(self) -> None:
        self._must_be_sound()
        self._is_doubtful = True
        with translated(self._path, "write"):
            os.fdatasync(self._descriptor)
        self._is_doubtful = False

    def _write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def _cut_back(self) -> None:
        """A part may have found room. It goes, durably: what was refused must not come back."""
        if os.fstat(self._descriptor).st_size > self._length:
            os.ftruncate(self._descriptor, self._length)
            os.fdatasync(self._descriptor)

    def _must_be_sound(self) -> None:
        if self._is_doubtful:
            raise Unknown("outcome-unknown", path=self._path, reason="an earlier write failed")

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class LocalDisk:
    """Files of this machine. Holds no state; safe to share between threads."""

    def create(self, path: str) -> LocalFile:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        with translated(path, "create"):
            return LocalFile(path, os.open(path, flags, 0o640))

    def copy(self, source: str, target: str) -> int:
        """The kernel copies. What it has made is looked at while the disk writes it. Of a copy that
        fails nothing stays where that can be helped: a full disk needs the room."""
        with translated(source, "read"):
            source_file = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with translated(target, "create"):
                flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
                made = os.open(target, flags, 0o640)
            try:
                return _copied(source_file, made, target)
            except MetaError:
                with suppress(MetaError):
                    self.remove(target)
                raise
            finally:
                os.close(made)
        finally:
            os.close(source_file)

    def read(self, path: str, offset: int, length: int) -> bytes:
        with translated(path, "read"):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_fully(descriptor, offset, length)
            finally:
                os.close(descriptor)

    def size(self, path: str) -> int:
        with translated(path, "read"):
            return os.stat(path).st_size

    def sync_file(self, path: str) -> None:
        """Bytes whose sync has failed before are clean in the kernel's cache, and this sync writes
        nothing of them: the cache is dropped, so that they are not read there any more."""
        with _opened(path, os.O_RDONLY) as descriptor:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync_folder(self, path: str) -> None:
        """A file system that cannot write names takes no more changes, if it has a journal, so that
        no later sync succeeds (docs/decisions/0419). A cache of names cannot be dropped as that of
        bytes is."""
        with _opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
            os.fsync(descriptor)

    def rename(self, source: str, target: str) -> None:
        """A hard link and an unlink: unlike rename(2) it cannot replace the target."""
        with translated(target, "write"):
            os.link(source, target)
            os.unlink(source)

    def move_folder(self, source: str, target: str) -> None:
        """Journalled file systems write a rename as one transaction. An empty folder would be
        replaced, so one that is there is looked for: this process alone moves folders there."""
        with translated(target, "write"):
            if os.path.lexists(target):
                raise Conflict("already-exists", path=target)
            os.rename(source, target)

    def walk(self, folder: str) -> list[str]:
        with translated(folder, "read"):
            return sorted(_below(folder, ""))

    def list(self, folder: str) -> list[str]:
        with translated(folder, "read"):
            return sorted(os.listdir(folder))

    def remove(self, path: str) -> None:
        with translated(path, "write"):
            os.unlink(path)

    def make_folder(self, path: str) -> None:
        make_durable(path, os.path.isdir, _make, self._sync_if_ours)

    def _sync_if_ours(self, path: str) -> None:
        """Syncs a folder that this process may read; in others, which it may only pass through, it
        has made nothing."""
        if os.access(path, os.R_OK):
            self.sync_folder(path)

    def remove_tree(self, path: str) -> None:
        with translated(path, "write"):
            if os.path.isdir(path):
                shutil.rmtree(path)
        parent = os.path.dirname(path)
        if os.path.isdir(parent):
            self.sync_folder(parent)


def _below(folder: str, prefix: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield f"{prefix}{entry.name}/"
                yield from _below(entry.path, f"{prefix}{entry.name}/")
            else:
                yield prefix + entry.name


def _copied(source_file: int, made: int, target: str) -> int:
    """Fills *made*, which is *target*, durably; returns its checksum."""
    with translated(target, "create"):  # a full disk refuses it
        while os.sendfile(made, source_file, None, _COPIED_AT_ONCE):
            pass
    with translated(target, "write"), ThreadPoolExecutor(1) as beside:
        synced = beside.submit(os.fdatasync, made)
        crc = _crc32_of(made)
        synced.result()
    return crc


def _crc32_of(descriptor: int) -> int:
    """The checksum of all bytes of a file, which are read a few at a time."""
    buffer = memoryview(bytearray(_LOOKED_AT_ONCE))
    crc = offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        crc = zlib.crc32(buffer[:count], crc)
        offset += count
    return crc


def _read_fully(descriptor: int, offset: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0:
        part = os.pread(descriptor, length, offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make(path: str) -> None:
    with translated(path, "create"):
        os.makedirs(path, mode=0o750, exist_ok=True)  # another thread may be faster


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    """A descriptor to sync by."""
    with translated(path, "write"):
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
