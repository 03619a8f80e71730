"""One opening's log: segments made at the first write, one append and one fsync for each group."""

import posixpath
from collections.abc import Sequence

from dataplane.region.disk import AppendFile, Disk
from dataplane.region.log_format import (
    BATCH,
    HEADER_BYTES,
    Record,
    SegmentHeader,
    encode_header,
    encode_record,
)
from dataplane.region.names import Numbered, Opening, segment_name


class LogWriter:
    """Not safe for two threads. After an error it must not be used: what is on disk is unknown."""

    def __init__(self, disk: Disk, root: str, region_id: int, opening: Opening) -> None:
        self._disk = disk
        self._root = root
        self._region_id = region_id
        self._opening = opening
        self._file: AppendFile | None = None
        self._begun: AppendFile | None = None  # created, and without a header as yet
        self._length = 0
        self.number = 0
        """The newest segment's; 0: none yet."""
        self.closed_bytes = 0
        """In finished segments that may still be needed."""

    @property
    def size_bytes(self) -> int:
        return self.closed_bytes + self._length

    @property
    def next_segment(self) -> int:
        """The lowest number whose segment has no record yet, if nothing is written meanwhile."""
        return self.number + 1

    def append(self, payloads: Sequence[bytes], sequence: int) -> None:
        """Writes a group durably; `sequence` is the first record's.

        Returns after the fsync: the caller still has to look at the fence.
        """
        if self._file is None:
            self._file = self._new_segment()
        group = b"".join(
            encode_record(Record(BATCH, sequence + at, self._length, payload))
            for at, payload in enumerate(payloads)
        )
        self._file.append(group)
        self._file.sync()
        self._length += len(group)

    def rotate(self) -> None:
        """Closes the current segment, when its rows are to be flushed or nobody writes.

        The next write opens another.
        """
        if self._begun is not None:
            self._begun.close()
            self._begun = None
        if self._file is not None:
            self._file.close()
            self._file = None
            self.closed_bytes += self._length
            self._length = 0

    def _new_segment(self) -> AppendFile:
        name = Numbered(*self._opening, self.number + 1 if self._begun is None else self.number)
        if self._begun is None:
            self._begun = self._disk.create(posixpath.join(self._root, segment_name(name)))
            self.number = name.number
        file = self._begun
        # A full disk refuses this as a whole, and the next write tries again in the same file.
        file.append(encode_header(SegmentHeader(self._region_id, name)))
        # Synced before the first record, so that damage to the header is known from a torn one.
        file.sync()
        self._disk.sync_folder(self._root)
        self._begun = None
        self._length = HEADER_BYTES
        return file
