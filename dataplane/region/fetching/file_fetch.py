"""Files of a leader on their way to the root of a copy that its log does not reach (P5.9).

Each data file is written under an unfinished name, compared with the length and the checksum of the
leader's manifest, synced, and only then named; so a file that has its name is whole, and a fetch
that is begun again lacks only the others. Its name is derived from what it is, not from its number.
No manifest of the copy names any before all are there (`installing.py`).

Synchronous, one call at a time: the caller holds the lock of the copy.
"""

import posixpath
import zlib
from collections.abc import Collection, Sequence
from typing import Protocol

from dataplane.region.disk.disk import AppendFile, Disk
from dataplane.region.fetching.session_files import SessionFile, files_of
from dataplane.region.format.names import ATTEMPTS, UNFINISHED
from dataplane.region.manifests.copied_names import COPIED, copied_name, digest
from dataplane.region.manifests.manifest import FileEntry, Manifest
from dataplane.region.memory.statement_files import MAGIC
from dataplane.region.place import RegionPlace
from metasrv_base.errors import Corrupt


class Arrival(Protocol):
    """A file of which pieces arrive in order."""

    size: int
    """Bytes that have arrived."""

    def append(self, data: bytes) -> None: ...

    def finish(self) -> None:
        """The file is verified and durable. Raises Corrupt for one that is not what the manifest
        names."""
        ...

    def close(self) -> None:
        """Takes no more. What is unfinished is removed when the next fetch begins."""
        ...


class Receiver(Protocol):
    """Files that arrive, by number."""

    def file(self, number: int) -> SessionFile: ...

    def has_arrived(self, number: int) -> None:
        """The file is whole; a data file is durable."""
        ...


class FileFetch:
    """The files of a leader's manifest: those that a copy lacks, and those that have arrived."""

    def __init__(self, region_place: RegionPlace, source: str, manifest: Manifest) -> None:
        """Begins nothing yet. *source*: the leader's root. Raises Corrupt for a manifest of files
        that reach up to a position that is not known."""
        if manifest.in_files is None:
            raise Corrupt(root=source, reason="it is not known up to where its files go")
        self.place = region_place
        self.source = source
        self.manifest = manifest
        self.statements: dict[int, bytes] = {}
        """Records of statements that have arrived, by the number of their file."""
        self._files = files_of(manifest)
        self._share = region_place.budget.statement_share()
        self._arrived: set[int] = set()

    @property
    def bytes_total(self) -> int:
        """Bytes of all files."""
        return sum(file.bytes for file in self._files)

    @property
    def bytes_here(self) -> int:
        """Bytes of files that have arrived, or were here before."""
        return sum(self.file(number).bytes for number in self._arrived)

    @property
    def missing(self) -> Sequence[int]:
        """Numbers of files that have not arrived, in order."""
        return [number for number in self._numbers if number not in self._arrived]

    def file(self, number: int) -> SessionFile:
        return self._files[number - 1]

    def begin(self, own: Manifest, awaited: Collection[str] = ()) -> None:
        """Finds the files that are here already, and removes what neither the leader's manifest nor
        the copy needs: its *own* manifest, or changes of its log that name the files *awaited*."""
        disk, folder = self.place.disk, self._path(COPIED)
        disk.make_folder(folder)
        names = disk.list(folder)
        kept = {entry.name for entry in own.files}.union(awaited)
        needed = {
            self._local_name(number): number for number in self._numbers if self._is_data(number)
        }
        for name in names:
            path = f"{COPIED}/{name}"
            if path in needed:
                self._arrived.add(needed[path])
            elif path not in kept:
                disk.remove(self._path(path))

    def receive(self, number: int) -> Arrival:
        """Begins to take the pieces of a file that is missing."""
        if not self._is_data(number):
            return _ArrivingStatements(self, number)
        path = self._path(self._local_name(number))
        return ArrivingData(self, number, self.place.disk, path)

    def local_files(self) -> list[FileEntry]:
        """Data files as the copy's manifest names them."""
        return [
            entry.model_copy(
                update={
                    "root": None,
                    "name": copied_name(self.source, entry),
                    "run": None if entry.run is None else digest(self.source, entry.run),
                }
            )
            for entry in self.manifest.files
        ]

    def sync(self) -> None:
        """Names of files are on stable storage."""
        for folder in (COPIED, ATTEMPTS):
            self.place.disk.sync_folder(self._path(folder))
        self.place.disk.sync_folder(self.place.root)

    def close(self) -> None:
        """Holds no memory any more."""
        self.statements.clear()
        self._share.set(0)

    def has_arrived(self, number: int) -> None:
        """The file is whole; a data file is durable."""
        self._arrived.add(number)
        self._share.set(sum(map(len, self.statements.values())))

    @property
    def _numbers(self) -> range:
        return range(1, len(self._files) + 1)

    def _is_data(self, number: int) -> bool:
        return number > len(self.manifest.statement_files)

    def _local_name(self, number: int) -> str:
        entry = self.manifest.files[number - 1 - len(self.manifest.statement_files)]
        return copied_name(self.source, entry)

    def _path(self, name: str) -> str:
        return posixpath.join(self.place.root, name)


class ArrivingData:
    """A data file on its way to its path, under an unfinished name."""

    def __init__(self, fetch: Receiver, number: int, disk: Disk, path: str) -> None:
        self._fetch, self._number, self._disk, self._path = fetch, number, disk, path
        self._file: AppendFile | None = disk.create(path + UNFINISHED)
        self._crc32 = 0
        self.size = 0

    def append(self, data: bytes) -> None:
        assert self._file is not None
        self._file.append(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        self.size += len(data)

    def finish(self) -> None:
        assert self._file is not None
        _must_be(self._fetch.file(self._number), self.size, self._crc32)
        self._file.sync()
        self.close()
        self._disk.rename(self._path + UNFINISHED, self._path)
        self._fetch.has_arrived(self._number)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class _ArrivingStatements:
    """Files of statements are small and are written anew: they stay in memory."""

    def __init__(self, fetch: FileFetch, number: int) -> None:
        self._fetch, self._number = fetch, number
        self._pieces: list[bytes] = []
        self.size = 0

    def append(self, data: bytes) -> None:
        self._pieces.append(data)
        self.size += len(data)

    def finish(self) -> None:
        data = b"".join(self._pieces)
        file = self._fetch.file(self._number)
        _must_be(file, len(data), zlib.crc32(data))
        if not data.startswith(MAGIC):
            raise Corrupt(path=file.name, reason="this is no file of statements")
        self._fetch.statements[self._number] = data[len(MAGIC) :]
        self._fetch.has_arrived(self._number)

    def close(self) -> None:
        self._pieces.clear()


def _must_be(file: SessionFile, size: int, crc32: int) -> None:
    checksum = f"{crc32:08x}"
    if size != file.bytes or checksum != file.crc32:
        reason = "what was fetched is not the file that the leader's manifest names"
        facts = {"bytes": size, "expected": file.bytes, "crc32": checksum}
        raise Corrupt(file=file.name, reason=reason, **facts)
