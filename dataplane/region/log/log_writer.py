"""One opening's log: segments made at the first write, one append and one fsync for each group."""

import posixpath
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.log.records import LogPosition, RecordType, SegmentHeader
from dataplane.log.segment import Segment, SegmentRecords, begin
from dataplane.region.copies.history import LogHistory
from dataplane.region.disk.disk import AppendFile, Disk
from dataplane.region.format.names import Numbered, Opening, segment_name


class EncodableSchema(Protocol):
    """A schema with its payload: made here, as `LoggedSchema`, or as a leader sent it."""

    @property
    def id(self) -> bytes: ...

    def encode(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class PositionedRecord:
    """The payload of a group or a change, its place in the log, and all schemas that it needs."""

    position: LogPosition
    payload: bytes | memoryview
    schemas: Sequence[EncodableSchema] = ()
    """None of a change."""
    type: RecordType = RecordType.GROUP


class LogWriter:
    """Writes the log of a region. Not safe for two threads: whoever calls a method holds `writing`.
    After an error it must not be used: what is on disk is unknown."""

    def __init__(
        self, disk: Disk, root: str, region_id: int, opening: Opening, history: LogHistory
    ) -> None:
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
        self.history = history
        """The positions of what is durable, through all openings."""
        self.borrowed_sequence = 0
        """The last record that is in the log of another root; 0: none is."""

    @property
    def size_bytes(self) -> int:
        return self.closed_bytes + (0 if self._segment is None else self._segment.length)

    @property
    def next_segment(self) -> int:
        """The lowest number whose segment has no record yet, if nothing is written meanwhile."""
        return self._number + 1

    def append(self, group: bytes, schemas: Sequence[EncodableSchema], sequence: int) -> None:
        """Writes a group durably, behind those of its schemas that the segment does not have.

        Returns after the fsync: the caller still has to look at the fence.
        """
        position = LogPosition(self._opening.epoch, sequence)
        self.append_records([PositionedRecord(position, group, schemas)])

    def append_records(self, records: Sequence[PositionedRecord]) -> None:
        """Writes records that have positions already and follow each other, as `append` does: one
        write and one fsync."""
        if self._segment is None:
            self._segment = self._new_segment()
        history, schemas = self.history, set(self._schemas)
        contents: list[SegmentRecords] = []
        for record in records:
            history = history.extended(record.position)
            for schema in record.schemas:
                if schema.id not in schemas:
                    schemas.add(schema.id)
                    encoded = schema.encode()
                    contents.append(SegmentRecords(RecordType.SCHEMA, record.position, encoded))
            contents.append(SegmentRecords(record.type, record.position, record.payload))
        self._segment.append(contents)
        self._segment.sync()
        self._schemas, self.history = schemas, history

    def cut(self, size_bytes: int, sequence: int) -> None:
        """Forgets so many bytes of finished segments, which a manifest has let go, with the
        records up to that sequence."""
        self.closed_bytes -= size_bytes
        if self.history.at(sequence) is not None:
            self.history = self.history.flushed_to(sequence)

    @property
    def borrowed_to(self) -> LogPosition | None:
        """The last record of the logs that are borrowed; None: none of them is retained."""
        return self.history.at(self.borrowed_sequence)

    def give_back(self) -> None:
        """Forgets the records of borrowed logs, which a manifest has let go."""
        self.cut(0, self.borrowed_sequence)

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
