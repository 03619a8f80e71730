"""Files that a record of the leader's log names, on their way to the root of a copy (P5.9).

A copy takes the record once these files are in its own root, verified and on stable storage: the
record is acknowledged then, and the rows of the files count with it. Each file is received as those
of a whole fetch are (`file_fetch.py`), under a name that says what it is.

Synchronous, one call at a time: the caller holds the lock of the copy.
"""

import posixpath
from collections.abc import Sequence
from contextlib import suppress

from dataplane.region.disk.disk import Disk
from dataplane.region.fetching.file_fetch import Arrival, ArrivingData
from dataplane.region.fetching.session_files import SessionFile
from dataplane.region.format.names import UNFINISHED
from dataplane.region.log.logged_files import LoggedFiles
from dataplane.region.manifests.manifest import FileEntry
from dataplane.region.place import RegionPlace
from metasrv_base.errors import NotFound
from metasrv_base.wire.node.copy_sessions import NAMED_FILES_MAX


class LoggedFetch:
    """The files of a record that a copy lacks, as many as one session has, numbered from 1 on."""

    def __init__(self, region_place: RegionPlace, files: LoggedFiles) -> None:
        self.place = region_place
        entries = files.entries_in(region_place.root)
        self._logged = files
        self._lacking = [
            number
            for number, entry in enumerate(entries)
            if not _is_whole(region_place.disk, region_place.root, entry)
        ][:NAMED_FILES_MAX]
        self._entries = [entries[number] for number in self._lacking]
        self._arrived: set[int] = set()

    def begin(self) -> None:
        """Makes room for the files: what is left of an earlier fetch goes."""
        disk = self.place.disk
        for path in self._paths():
            disk.make_folder(posixpath.dirname(path))
            for left in (path, path + UNFINISHED):
                with suppress(NotFound):
                    disk.remove(left)

    def names_in(self, root: str) -> list[str]:
        """The names of the files in the root of a leader, by number."""
        entries = self._logged.entries_in(root)
        return [entries[number].name for number in self._lacking]

    @property
    def bytes_total(self) -> int:
        """Bytes of all files."""
        return sum(entry.bytes for entry in self._entries)

    @property
    def bytes_here(self) -> int:
        """Bytes of files that have arrived."""
        return sum(self._entries[number - 1].bytes for number in self._arrived)

    @property
    def missing(self) -> Sequence[int]:
        """Numbers of files that have not arrived, in order."""
        numbers = range(1, len(self._entries) + 1)
        return [number for number in numbers if number not in self._arrived]

    def file(self, number: int) -> SessionFile:
        entry = self._entries[number - 1]
        return SessionFile(None, entry.name, entry.bytes, entry.crc32)

    def receive(self, number: int) -> Arrival:
        """Begins to take the pieces of a file that is missing."""
        return ArrivingData(self, number, self.place.disk, self._paths()[number - 1])

    def has_arrived(self, number: int) -> None:
        self._arrived.add(number)

    def _paths(self) -> list[str]:
        return [posixpath.join(self.place.root, entry.name) for entry in self._entries]


def are_durable(region_place: RegionPlace, files: LoggedFiles) -> bool:
    """Whether all files are in the own root, whole: they are on stable storage on return, with
    their names. False: some are not there."""
    disk, root = region_place.disk, region_place.root
    entries = files.entries_in(root)
    if not all(_is_whole(disk, root, entry) for entry in entries):
        return False
    folders = dict[str, None]()
    for entry in entries:
        disk.sync_file(posixpath.join(root, entry.name))
        folder = posixpath.dirname(entry.name)
        while folder:
            folders[folder] = None
            folder = posixpath.dirname(folder)
    for folder in sorted(folders, reverse=True):
        disk.sync_folder(posixpath.join(root, folder))
    if entries:
        disk.sync_folder(root)
    return True


def _is_whole(disk: Disk, root: str, entry: FileEntry) -> bool:
    """A file has its name once it was verified."""
    try:
        return disk.size(posixpath.join(root, entry.name)) == entry.bytes
    except NotFound:
        return False
