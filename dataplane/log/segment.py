"""A segment that is written: how long it is, how much of it is synced, and where records stand."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from dataplane.log.records import (
    HEADER_BYTES,
    LogPosition,
    Record,
    SegmentHeader,
    encode_header,
    encode_record,
    salt_of,
)


class SegmentRecords(NamedTuple):
    """A record, wherever it stands."""

    type: int
    position: LogPosition
    payload: bytes | memoryview


class File(Protocol):
    """The part of dataplane/region/disk/disk.py's `AppendFile` that a segment needs."""

    def append(self, data: bytes) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...


class Segment:
    """One writer's, and not safe for two threads. After an error it must not be used: what is on
    disk is unknown."""

    def __init__(self, file: File, header: SegmentHeader) -> None:
        """The header is written and synced."""
        self._file = file
        self._salt = salt_of(header)
        self._durable = HEADER_BYTES
        self.length = HEADER_BYTES

    def append(self, contents: Sequence[SegmentRecords], *, is_hidden: bool = False) -> None:
        """Writes records behind the others. They are durable after `sync`.

        *is_hidden*: nobody reads the segment before it is synced, so that each record knows that
        all of them are durable.
        """
        written = self._encoded(contents, self._durable)
        if is_hidden:
            written = self._encoded(contents, self.length + len(written))
        self._file.append(written)
        self.length += len(written)

    def sync(self) -> None:
        self._file.sync()
        self._durable = self.length

    def close(self) -> None:
        self._file.close()

    def _encoded(self, contents: Sequence[SegmentRecords], durable: int) -> bytes:
        written: list[bytes] = []
        offset = self.length
        for content in contents:
            record = Record(content.type, content.position, durable, content.payload)
            written.append(encode_record(record, self._salt, offset))
            offset += len(written[-1])
        return written[0] if len(written) == 1 else b"".join(written)


def begin(file: File, header: SegmentHeader) -> Segment:
    """The header of a new segment, synced before the first record, so that damage to the header is
    known from a torn one. A full disk refuses it as a whole, and it can be begun again."""
    file.append(encode_header(header))
    file.sync()
    return Segment(file, header)
