"""The bytes of a log segment: a header, then records; and which of them a reader may believe.

Little-endian. Header, 44 bytes: magic, format, region id, epoch, opening, number, crc32.
Record, 32 bytes and a payload: magic, kind, payload length, `durable`, sequence, crc32 of the 28
bytes before it and of the payload. `durable` is how much of the segment was on stable storage when
the record was written: all that stands before the first record of its group (one write, one fsync).

A crash tears only the last group, which nobody was told of: the reader keeps the whole records
before the damage. A whole record *behind* the damage that knew the damaged bytes to be durable
proves that synced bytes were lost: that is `Corrupt`, not a shorter log.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from base.errors import Corrupt
from dataplane.region.names import Numbered

FORMAT = 1
BATCH = 1  # the only kind of record so far: one atomic batch (batch_format.py)

PAYLOAD_BYTES_MAX = (1 << 32) - 1  # what its length field holds
_SEGMENT_MAGIC = b"MSWAL\n"
_RECORD_MAGIC = b"\xffREC"
_SEGMENT = struct.Struct("<6sHQQQQI")
_RECORD = struct.Struct("<4sB3xIQQI")
_CRC_BYTES = 4

HEADER_BYTES = _SEGMENT.size
RECORD_HEADER_BYTES = _RECORD.size


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """Which log the segment belongs to, said inside as well as in its name."""

    region_id: int
    name: Numbered


@dataclass(frozen=True, slots=True)
class Record:
    kind: int
    sequence: int
    """Counts records of the region, through all openings; (epoch, sequence) is a log position."""
    durable: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """What a segment holds: the header (None: torn before it was synced) and its whole records."""

    header: SegmentHeader | None
    records: tuple[Record, ...]
    length: int
    """Bytes that header and whole records take; what lies behind is a torn tail."""


def encode_header(header: SegmentHeader) -> bytes:
    head = _SEGMENT.pack(_SEGMENT_MAGIC, FORMAT, header.region_id, *header.name, 0)[:-_CRC_BYTES]
    return head + zlib.crc32(head).to_bytes(_CRC_BYTES, "little")


def encode_record(record: Record) -> bytes:
    assert len(record.payload) <= PAYLOAD_BYTES_MAX
    fields = (record.kind, len(record.payload), record.durable, record.sequence)
    head = _RECORD.pack(_RECORD_MAGIC, *fields, 0)[:-_CRC_BYTES]
    crc = zlib.crc32(record.payload, zlib.crc32(head))
    return b"".join((head, crc.to_bytes(_CRC_BYTES, "little"), record.payload))


def scan_segment(data: bytes, name: str) -> SegmentScan:
    """Reads a segment up to its first damage. Raises Corrupt if the damage hit durable bytes."""
    view = memoryview(data)
    header = _header_at(view, name)
    if header is None:
        _refuse_lost_bytes(data, damage=0, name=name)
        return SegmentScan(None, (), 0)
    records: list[Record] = []
    offset = HEADER_BYTES
    while (record := _record_at(view, offset)) is not None:
        records.append(record)
        offset += RECORD_HEADER_BYTES + len(record.payload)
    if offset < len(data):
        _refuse_lost_bytes(data, damage=offset, name=name)
    return SegmentScan(header, tuple(records), offset)


def _header_at(view: memoryview, name: str) -> SegmentHeader | None:
    if len(view) < HEADER_BYTES:
        return None
    magic, version, region_id, epoch, opening, number, crc = _SEGMENT.unpack_from(view)
    if magic != _SEGMENT_MAGIC or crc != zlib.crc32(view[: HEADER_BYTES - _CRC_BYTES]):
        return None
    if version != FORMAT:
        raise Corrupt(segment=name, format=version, known=FORMAT)
    return SegmentHeader(region_id, Numbered(epoch, opening, number))


def _record_at(view: memoryview, offset: int) -> Record | None:
    """The whole record at `offset`; None: there is none, or it is damaged."""
    if len(view) - offset < RECORD_HEADER_BYTES:
        return None
    magic, kind, length, durable, sequence, crc = _RECORD.unpack_from(view, offset)
    start = offset + RECORD_HEADER_BYTES
    if magic != _RECORD_MAGIC or len(view) - start < length:
        return None
    payload = view[start : start + length]
    head = view[offset : start - _CRC_BYTES]
    if crc != zlib.crc32(payload, zlib.crc32(head)):
        return None
    return Record(kind, sequence, durable, bytes(payload))


def _refuse_lost_bytes(data: bytes, damage: int, name: str) -> None:
    view = memoryview(data)
    for offset in _magics(data, damage + 1):
        record = _record_at(view, offset)
        if record is not None and record.durable > damage:
            raise Corrupt(segment=name, damaged_at=damage, whole_record_at=offset)


def _magics(data: bytes, start: int) -> Iterator[int]:
    while (start := data.find(_RECORD_MAGIC, start)) >= 0:
        yield start
        start += 1
