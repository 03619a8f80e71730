"""Files `node/journal-{n}` under a node's root: the highest is current. Blocking."""

import re
import threading
from collections.abc import Sequence
from contextlib import ExitStack

from dataplane.datanode.orders import journal_format_v1
from dataplane.datanode.orders.journal_format import Journal, Record, contents_of, decode, header_of
from dataplane.log.records import LogPosition, RecordType
from dataplane.log.segment import Segment, SegmentRecords, begin
from dataplane.region.disk.disk import Disk
from metasrv_base.errors import MetaError

UNFINISHED = ".tmp"
_NAME = re.compile(r"journal-([1-9][0-9]{0,18})")
_UNFINISHED = re.compile(_NAME.pattern + re.escape(UNFINISHED))


class JournalFiles:
    """The current file, and how the next one takes its place. Safe for threads: who waits for a
    write may be cancelled while it goes on, and no file is closed under a write."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._segment: Segment | None = None
        self._last = LogPosition(0, 0)
        """The position of the newest record."""
        self._writing = threading.Lock()
        self.is_marked = False
        """Whether the end of the current file is known: `append` may go on in it."""

    def read(self) -> list[Record]:
        """The records of the current file; none if there is no file. Raises Corrupt."""
        numbers = self._numbers()
        if not numbers:
            return []
        path = self._path(numbers[-1])
        data = self._disk.read(path, 0, self._disk.size(path))
        journal = _decoded(data, numbers[-1], path)
        self._last = journal.last
        return journal.records

    def begin(self, records: Sequence[Record]) -> None:
        """Goes on in the next file, which holds *records*; it is there whole or not at all."""
        with self._writing:
            self._begin(records)

    def append(self, records: Sequence[Record]) -> None:
        """Durable when it returns. A record behind them says so, and is not synced itself: if it
        cannot be written, the next records need another file."""
        with self._writing:
            assert self._segment is not None, "begun when it was opened"
            contents = contents_of(records, self._last.epoch, self._last.sequence)
            self._segment.append(contents)
            self._segment.sync()
            self._last = contents[-1].position
            try:
                self._segment.append([SegmentRecords(RecordType.DURABLE, self._last, b"")])
            except MetaError:
                self.is_marked = False

    def close(self) -> None:
        with self._writing:
            self._close()

    def _begin(self, records: Sequence[Record]) -> None:
        for name in self._disk.list(self._folder):
            if _UNFINISHED.fullmatch(name):
                self._disk.remove(f"{self._folder}/{name}")
        numbers = self._numbers()
        number = numbers[-1] + 1 if numbers else 1
        path = self._path(number)
        file = self._disk.create(path + UNFINISHED)
        with ExitStack() as failed:
            failed.callback(file.close)
            segment = begin(file, header_of(number))
            contents = contents_of(records, number, self._last.sequence)
            segment.append(contents, is_hidden=True)
            segment.sync()
            self._disk.rename(path + UNFINISHED, path)
            self._disk.sync_folder(self._folder)
            failed.pop_all()
        self._close()
        self._segment, self._last = segment, contents[-1].position
        self.is_marked = True
        for old in numbers:
            self._disk.remove(self._path(old))

    def _close(self) -> None:
        if self._segment is not None:
            self._segment.close()

    def _numbers(self) -> list[int]:
        names = self._disk.list(self._folder)
        return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))

    def _path(self, number: int) -> str:
        return f"{self._folder}/journal-{number}"


def _decoded(data: bytes, number: int, path: str) -> Journal:
    if journal_format_v1.is_lines(data):
        return Journal(journal_format_v1.decode(data, path), LogPosition(number, 0))
    return decode(data, number, path)
