"""The body of a request by which a leader's node appends to copies: many regions at once, binary.

Little-endian: magic, format, the number of parts; then each part's header with its crc32, and its
payloads. A header names the region, the root of the copy that is meant, the leader's epoch, its
common sequence, the time of the latest statement that its log may lack (milliseconds, -1: it is not
said) and the history of the log, then the schemas (length, crc32) and the groups (type, epoch,
sequence, length, crc32) whose payloads follow in this order, byte for byte as logged.
"""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dataplane.log.records import LogPosition, RecordType
from dataplane.region.copies.history import EpochRun, LogHistory
from dataplane.region.following.copy_region import StreamedRecords
from dataplane.region.log.log_tail import StoredSchema
from dataplane.region.log.log_writer import PositionedRecord
from dataplane.region.log.logged_group import schema_ids
from metasrv_base.errors import Refused

MAGIC = b"MSAPP\n"
FORMAT = 3
PARTS_MAX = 1_024
RUNS_MAX = 4_096
GROUPS_MAX = 65_536
SCHEMAS_MAX = 4_096
ROOT_BYTES_MAX = 4_096
TYPES = frozenset({RecordType.GROUP, RecordType.CHANGE})
"""Types of records that are sent to copies."""

_BODY = struct.Struct("<6sHI")
_PART = struct.Struct("<QQQqQQQHIII")
_RUN = struct.Struct("<QQ")
_SCHEMA = struct.Struct("<II")
_RECORD = struct.Struct("<BQQII")
_CRC = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class AppendPart:
    """The records for one copy."""

    region_id: int
    root: str
    """The root of the copy that is meant: another root at this node is another copy."""
    records: StreamedRecords


def encode_append(parts: Sequence[AppendPart]) -> bytes:
    assert len(parts) <= PARTS_MAX
    pieces = [_BODY.pack(MAGIC, FORMAT, len(parts))]
    for part in parts:
        pieces += _encoded(part)
    return b"".join(pieces)


def decode_append(body: bytes) -> list[AppendPart]:
    """The payloads are copied, since a group may be kept for longer than the others. Raises Refused
    `invalid-request` for a body that was not made by `encode_append`, or was changed on its way."""
    reader = _BodyReader(memoryview(body))
    magic, version, count = reader.fields(_BODY)
    if magic != MAGIC or version != FORMAT or count > PARTS_MAX:
        raise _damaged("it is no request to append")
    parts = [_decoded(reader) for _ in range(count)]
    if reader.offset != len(body):
        raise _damaged("it is longer than its parts")
    return parts


def _encoded(part: AppendPart) -> Iterator[bytes]:
    records, root = part.records, part.root.encode()
    history = records.history
    schemas = {schema.id: schema.encode() for g in records.groups for schema in g.schemas}
    counts = (len(history.runs), len(schemas), len(records.groups))
    unlogged_ms = -1 if records.unlogged_ms is None else records.unlogged_ms
    head = [
        _PART.pack(
            *(part.region_id, records.epoch, records.common, unlogged_ms),
            *(*history.base, history.end, len(root), *counts),
        ),
        root,
        *(_RUN.pack(*run) for run in history.runs),
        *(_SCHEMA.pack(len(data), zlib.crc32(data)) for data in schemas.values()),
    ]
    for group in records.groups:
        crc = zlib.crc32(group.payload)
        head.append(_RECORD.pack(group.type, *group.position, len(group.payload), crc))
    whole = b"".join(head)
    yield whole
    yield _CRC.pack(zlib.crc32(whole))
    yield from schemas.values()
    yield from (bytes(group.payload) for group in records.groups)


class _Sized(NamedTuple):
    bytes: int
    crc: int


class _RecordHead(NamedTuple):
    type: int
    epoch: int
    sequence: int
    bytes: int
    crc: int


class _BodyReader:
    def __init__(self, view: memoryview) -> None:
        self._view = view
        self.offset = 0

    def fields(self, form: struct.Struct) -> tuple:  # type: ignore[type-arg]
        return form.unpack(self.take(form.size))

    def take(self, size: int) -> memoryview:
        piece = self._view[self.offset : self.offset + size]
        if len(piece) < size:
            raise _damaged("it is shorter than it says")
        self.offset += size
        return piece

    def checked(self, sized: _Sized) -> memoryview:
        piece = self.take(sized.bytes)
        if zlib.crc32(piece) != sized.crc:
            raise _damaged("a checksum does not fit")
        return piece

    def check_head(self, start: int) -> None:
        head = self._view[start : self.offset]
        (crc,) = self.fields(_CRC)
        if zlib.crc32(head) != crc:
            raise _damaged("a checksum does not fit")


def _decoded(reader: _BodyReader) -> AppendPart:
    start = reader.offset
    region_id, epoch, common, unlogged_ms, *rest = reader.fields(_PART)
    base_epoch, base_sequence, end, root_bytes, runs, schemas, groups = rest
    if root_bytes > ROOT_BYTES_MAX or runs > RUNS_MAX or schemas > SCHEMAS_MAX:
        raise _damaged("more than its format allows")
    if groups > GROUPS_MAX:
        raise _damaged("more than its format allows")
    root = bytes(reader.take(root_bytes))
    run_list = [EpochRun(*reader.fields(_RUN)) for _ in range(runs)]
    schema_sizes = [_Sized(*reader.fields(_SCHEMA)) for _ in range(schemas)]
    record_heads = [reader.fields(_RECORD) for _ in range(groups)]
    reader.check_head(start)
    stored = [StoredSchema(bytes(reader.checked(sized))) for sized in schema_sizes]
    by_id = {schema.id: schema for schema in stored}
    positioned = [_record(reader, _RecordHead(*fields), by_id) for fields in record_heads]
    history = LogHistory(LogPosition(base_epoch, base_sequence), tuple(run_list), end)
    said_ms = None if unlogged_ms < 0 else unlogged_ms
    records = StreamedRecords(epoch, history, common, positioned, said_ms)
    return AppendPart(region_id, root.decode(), records)


def _record(
    reader: _BodyReader, head: "_RecordHead", by_id: Mapping[bytes, StoredSchema]
) -> PositionedRecord:
    payload = bytes(reader.checked(_Sized(head.bytes, head.crc)))
    if head.type not in TYPES:
        raise _damaged("a record of a type that this program does not know")
    needed = schema_ids(payload, "a request to append") if head.type == RecordType.GROUP else ()
    if not by_id.keys() >= set(needed):
        raise _damaged("a group without its schema")
    position = LogPosition(head.epoch, head.sequence)
    schemas = [by_id[id] for id in needed]
    return PositionedRecord(position, payload, schemas, RecordType(head.type))


def _damaged(reason: str) -> Refused:
    return Refused("invalid-request", reason=f"the body cannot be read: {reason}")
