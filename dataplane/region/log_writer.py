"""One opening's log: segments made at the first write, one append and one fsync for each group."""

import posixpath
from collections.abc import Sequence

from dataplane.region.disk import AppendFile, Disk
from dataplane.region.log_format import (
    HEADER_BYTES,
    Position,
    Record,
    RecordType,
    SegmentHeader,
    encode_header,
    encode_record,
    salt_of,
)
from dataplane.region.logged_group import LoggedSchema
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
        self._salt = 0
        self._schemas: set[bytes] = set()
        """Ids of those that the current segment has."""
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

    def append(self, group: bytes, schemas: Sequence[LoggedSchema], sequence: int) -> None:
        """Writes a group durably, behind those of its schemas that the segment does not have.

        Returns after the fsync: the caller still has to look at the fence.
        """
        if self._file is None:
            self._file = self._new_segment()
        position = Position(self._opening.epoch, sequence)
        missing = [schema for schema in schemas if schema.id not in self._schemas]
        payloads = [(RecordType.SCHEMA, schema.encode()) for schema in missing]
        written = b""
        for type_, payload in (*payloads, (RecordType.GROUP, group)):
            record = Record(type_, position, self._length, payload)
            written += encode_record(record, self._salt, self._length + len(written))
        self._file.append(written)
        self._file.sync()
        self._length += len(written)
        self._schemas.update(schema.id for schema in missing)

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
            self._schemas.clear()

    def _new_segment(self) -> AppendFile:
        name = Numbered(*self._opening, self.number + 1 if self._begun is None else self.number)
        if self._begun is None:
            self._begun = self._disk.create(posixpath.join(self._root, segment_name(name)))
            self.number = name.number
        file = self._begun
        header = SegmentHeader(self._region_id, name)
        # A full disk refuses this as a whole, and the next write tries again in the same file.
        file.append(encode_header(header))
        # Synced before the first record, so that damage to the header is known from a torn one.
        file.sync()
        self._disk.sync_folder(self._root)
        self._begun = None
        self._length, self._salt = HEADER_BYTES, salt_of(header)
        return file
