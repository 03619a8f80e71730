"""One opening's log: segments made at the first write, one append and one fsync for each group."""

import posixpath
import threading
from collections.abc import Sequence

from dataplane.log.records import LogPosition, RecordType, SegmentHeader
from dataplane.log.segment import Segment, SegmentRecords, begin
from dataplane.region.disk.disk import AppendFile, Disk
from dataplane.region.format.names import Numbered, Opening, segment_name
from dataplane.region.log.logged_group import LoggedSchema


class LogWriter:
    """Writes the log of a region. Not safe for two threads: whoever calls a method holds `writing`.
    After an error it must not be used: what is on disk is unknown."""

    def __init__(self, disk: Disk, root: str, region_id: int, opening: Opening) -> None:
        self.writing = threading.Lock()
        """The lock of the region's only writer, from the choice of a row version to the memtable;
        held without a write, it keeps all versions as they are."""
        self._disk = disk
        self._root = root
        self._region_id = region_id
        self._opening = opening
        self._segment: Segment | None = None
        self._begun: AppendFile | None = None  # created, and without a header as yet
        self._schemas: set[bytes] = set()
        """Ids of those that the current segment has."""
        self._number = 0
        """The newest segment's; 0: none yet."""
        self.closed_bytes = 0
        """Bytes in finished segments that may still be needed."""

    @property
    def size_bytes(self) -> int:
        return self.closed_bytes + (0 if self._segment is None else self._segment.length)

    @property
    def next_segment(self) -> int:
        """The lowest number whose segment has no record yet, if nothing is written meanwhile."""
        return self._number + 1

    def append(self, group: bytes, schemas: Sequence[LoggedSchema], sequence: int) -> None:
        """Writes a group durably, behind those of its schemas that the segment does not have.

        Returns after the fsync: the caller still has to look at the fence.
        """
        if self._segment is None:
            self._segment = self._new_segment()
        position = LogPosition(self._opening.epoch, sequence)
        missing = [schema for schema in schemas if schema.id not in self._schemas]
        contents = [
            SegmentRecords(RecordType.SCHEMA, position, schema.encode()) for schema in missing
        ]
        self._segment.append([*contents, SegmentRecords(RecordType.GROUP, position, group)])
        self._segment.sync()
        self._schemas.update(schema.id for schema in missing)

    def cut(self, size_bytes: int) -> None:
        """Forgets so many bytes of finished segments, which a manifest has let go."""
        self.closed_bytes -= size_bytes

    def rotate(self) -> None:
        """Closes the current segment, when its rows are to be flushed or nobody writes.

        The next write opens another.
        """
        if self._begun is not None:
            self._begun.close()
            self._begun = None
        if self._segment is not None:
            self._segment.close()
            self.closed_bytes += self._segment.length
            self._segment = None
            self._schemas.clear()

    def _new_segment(self) -> Segment:
        name = Numbered(*self._opening, self._number + 1 if self._begun is None else self._number)
        if self._begun is None:
            self._begun = self._disk.create(posixpath.join(self._root, segment_name(name)))
            self._number = name.number
        segment = begin(self._begun, SegmentHeader(self._region_id, name))
        self._disk.sync_folder(self._root)
        self._begun = None
        return segment
