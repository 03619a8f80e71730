"""The bytes of a log segment: a header, then records; and which of them a reader may believe.

Regions' logs and the node's journal are written so. Little-endian.

Segment header, 44 bytes: magic, format, owner (a region id; 0: the node), epoch, opening, number,
crc32 of the 40 bytes before it.

Record, 44 bytes and a payload: magic, type, payload length, position (epoch, sequence), `durable`,
crc32 of the payload, sum. The crc goes with the payload wherever it is copied; the sum belongs to
this place: a crc32 of the 40 bytes before it, begun with that of the segment's header and the
record's offset. Bytes of a record inside a value, or of another segment, are therefore no record.

`durable` is how much of the segment is on stable storage wherever the record is read: all that
stands before the first record of its write, and the write itself where nobody sees the segment
before it is synced (as a journal file, which is renamed then). A crash tears only the last write,
which nobody was told of, and may keep its pages in any order: the reader keeps the whole records
before the damage. A whole record that knows the damaged bytes to be durable, wherever it stands,
proves that synced bytes were lost: that is `Corrupt`, not a shorter log.

Segments of format 1 are read by dataplane/region/log/log_format_v1.py.
"""

import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from metasrv_base.errors import Corrupt

FORMAT = 2

PAYLOAD_BYTES_MAX = (1 << 32) - 1  # what its length field holds
RECORD_MAGIC = b"\xffREC"
_SEGMENT_MAGIC = b"MSWAL\n"
_SEGMENT = struct.Struct("<6sHQQQQI")
_RECORD = struct.Struct("<4sB3xIQQQII")
_PLACE = struct.Struct("<IQ")
_CRC_BYTES = 4

HEADER_BYTES = _SEGMENT.size
RECORD_HEADER_BYTES = _RECORD.size


class RecordType(IntEnum):
    """Numbers are stored and never given to another meaning."""

    SCHEMA = 1
    """An Arrow schema of groups that follow in this segment. Has the position of the record that
    follows it, and takes none."""
    GROUP = 2
    """Statements that were written together, with their rows."""
    FLOOR = 3
    """Never written: a schema floor is a part of CHANGE, as are 4 to 6."""
    MARK = 4
    """Never written: a mark that was opened or closed."""
    DEAD_INDEX = 5
    """Never written: an index that was removed."""
    INGEST = 6
    """Never written: files that a job has made, and that were taken."""
    FREEZE = 7
    """Reserved: a freeze of the cluster."""
    EPOCH = 8
    """Reserved: a leader's first record of its epoch."""
    NODE = 9
    """One of the node's journal."""
    DURABLE = 10
    """A record that carries its `durable` alone, written behind a sync and not synced itself: so
    damage in the newest synced write is known from a torn one. Has the position of the record
    before it, and takes none."""
    CHANGE = 11
    """The schema, the floor and the marks of a region after a change of them; with the files that
    it takes, if it takes any."""


TAKE_NONE = frozenset({RecordType.SCHEMA, RecordType.DURABLE})
"""Types of records that take no position."""


class LogPosition(NamedTuple):
    """Orders the records of a log through all its segments."""

    epoch: int
    sequence: int
    """Rises by one with each record that takes a position, through all epochs."""


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The log that the segment belongs to, said inside as well as in its name."""

    owner: int
    name: tuple[int, int, int]
    """Epoch, opening, number."""


@dataclass(frozen=True, slots=True)
class Record:
    type: int
    position: LogPosition
    durable: int
    payload: bytes | memoryview


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """The header of a segment (None: torn before it was synced) and its whole records."""

    header: SegmentHeader | None
    records: tuple[Record, ...]
    length: int
    """Bytes that header and whole records take; what lies behind is a torn tail."""
    format: int = FORMAT


def encode_header(header: SegmentHeader, version: int = FORMAT) -> bytes:
    head = _SEGMENT.pack(_SEGMENT_MAGIC, version, header.owner, *header.name, 0)[:-_CRC_BYTES]
    return head + zlib.crc32(head).to_bytes(_CRC_BYTES, "little")


def salt_of(header: SegmentHeader) -> int:
    """Begins the sums of a segment's records: its header's crc32. (The crc32 of a text with its own
    crc32 behind it is the same for all.)"""
    return int.from_bytes(encode_header(header)[-_CRC_BYTES:], "little")


def encode_record(record: Record, salt: int, offset: int) -> bytes:
    """The record as it stands at that offset of that segment."""
    assert len(record.payload) <= PAYLOAD_BYTES_MAX
    crc = zlib.crc32(record.payload)
    fields = (record.type, len(record.payload), *record.position, record.durable, crc)
    head = _RECORD.pack(RECORD_MAGIC, *fields, 0)[:-_CRC_BYTES]
    total = zlib.crc32(head, _seed(salt, offset))
    return b"".join((head, total.to_bytes(_CRC_BYTES, "little"), record.payload))


def header_of(data: bytes | memoryview, name: str) -> tuple[int, SegmentHeader] | None:
    """Format and identity of a segment; None: its header is not whole."""
    if len(data) < HEADER_BYTES:
        return None
    magic, version, owner, epoch, opening, number, crc = _SEGMENT.unpack_from(data)
    if magic != _SEGMENT_MAGIC or crc != zlib.crc32(data[: HEADER_BYTES - _CRC_BYTES]):
        return None
    if version not in (1, FORMAT):
        raise Corrupt(segment=name, format=version, known=FORMAT)
    return version, SegmentHeader(owner, (epoch, opening, number))


def scan_records(data: bytes, expected: SegmentHeader, name: str) -> SegmentScan:
    """Reads a segment of this format up to its first damage; `expected` is its identity.

    Raises Corrupt if the damage hit durable bytes, or if it is another segment.
    """
    view, salt = memoryview(data), salt_of(expected)
    format_header = header_of(view, name)
    if format_header is None:
        _refuse_lost_bytes(data, salt, (), damage=0, name=name)
        return SegmentScan(None, (), 0)
    if format_header[1] != expected:
        raise Corrupt(segment=name, found=str(format_header[1]), expected=str(expected))
    records: list[Record] = []
    offset = HEADER_BYTES
    while (record := _record_at(view, salt, offset)) is not None:
        records.append(record)
        offset += RECORD_HEADER_BYTES + len(record.payload)
    _refuse_lost_bytes(data, salt, records, damage=offset, name=name)
    return SegmentScan(expected, tuple(records), offset)


def refuse_unknown(record: Record, types: Collection[int], name: str) -> None:
    """Raises Corrupt for a record that this reader cannot replay: nothing behind it counts."""
    if record.type not in types:
        raise Corrupt(
            segment=name,
            record_type=record.type,
            epoch=record.position.epoch,
            sequence=record.position.sequence,
            reason="a record of a type that this program does not know",
        )


def refuse_gap(last: LogPosition | None, record: Record, name: str) -> None:
    """Raises Corrupt unless the record follows *last*; None: it is the segment's first."""
    epoch, sequence = record.position
    if last is not None and (epoch < last.epoch or sequence != last.sequence + 1):
        raise Corrupt(segment=name, epoch=epoch, sequence=sequence, last=list(last))


def magics(data: bytes, start: int) -> Iterator[int]:
    """Yields the places where a record may begin."""
    while (start := data.find(RECORD_MAGIC, start)) >= 0:
        yield start
        start += 1


def _seed(salt: int, offset: int) -> int:
    return zlib.crc32(_PLACE.pack(salt, offset))


def _record_at(view: memoryview, salt: int, offset: int) -> Record | None:
    """The whole record at `offset`, sharing the memory; None: there is none, or it is damaged."""
    start = offset + RECORD_HEADER_BYTES
    if len(view) < start:
        return None
    fields = _RECORD.unpack_from(view, offset)
    magic, type_, length, epoch, sequence, durable, crc, total = fields
    if magic != RECORD_MAGIC or len(view) - start < length:
        return None
    if total != zlib.crc32(view[offset : start - _CRC_BYTES], _seed(salt, offset)):
        return None
    payload = view[start : start + length]
    if crc != zlib.crc32(payload):
        return None
    return Record(type_, LogPosition(epoch, sequence), durable, payload)


def _refuse_lost_bytes(
    data: bytes, salt: int, before: Sequence[Record], damage: int, name: str
) -> None:
    """Raises Corrupt if whole records follow the damage: durable bytes were lost. *damage* is the
    offset at which the whole records *before* end."""
    durable = max((record.durable for record in before), default=0)
    if durable > damage:
        raise Corrupt(segment=name, damaged_at=damage, durable=durable)
    view = memoryview(data)
    for offset in magics(data, damage + 1):
        record = _record_at(view, salt, offset)
        if record is not None and record.durable > damage:
            raise Corrupt(segment=name, damaged_at=damage, whole_record_at=offset)
