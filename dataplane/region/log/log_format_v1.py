"""Log segments as they were written before statements were logged in groups: read, never written.

The header is as today's, with format 1. Record, 32 bytes and a payload: magic, kind, payload
length, `durable`, sequence, crc32 of the 28 bytes before it and of the payload. The only kind is a
batch of one statement: the length of a JSON head, the head, an Arrow IPC stream of rows whose
`_family` says where they belong.
"""

import struct
import zlib
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from dataplane.log.records import (
    HEADER_BYTES,
    RECORD_MAGIC,
    LogPosition,
    Record,
    RecordType,
    SegmentScan,
    header_of,
    magics,
)
from dataplane.region.format.columns import KEY
from dataplane.region.format.families import FamilyRows, sliced
from dataplane.region.format.row_keys import RowKeys
from dataplane.region.log.logged_group import LoggedGroup, LoggedStatement, stamped
from metasrv_base.errors import Corrupt

FORMAT = 1
_BATCH = 1
_RECORD = struct.Struct("<4sB3xIQQI")
_LENGTH = struct.Struct("<I")
_CRC_BYTES = 4


class BatchHead(BaseModel):
    """The head of a logged batch. `version` is the row version of all its rows; `family` is the
    family of the rows that do not name one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    family: Literal["rows"] = "rows"
    version: int
    statement_id: str
    schema_version: int


def scan_records(data: bytes, name: str) -> SegmentScan:
    """Scans records as log_format's; records are numbered within the epoch of their segment."""
    view = memoryview(data)
    format_header = header_of(view, name)
    assert format_header is not None, "the header said that it is of this format"
    header = format_header[1]
    epoch = header.name[0]
    records: list[Record] = []
    offset = HEADER_BYTES
    while (record := _record_at(view, offset, epoch)) is not None:
        records.append(record)
        offset += _RECORD.size + len(record.payload)
    for start in magics(data, offset + 1) if offset < len(data) else ():
        behind = _record_at(view, start, epoch)
        if behind is not None and behind.durable > offset:
            raise Corrupt(segment=name, damaged_at=offset, whole_record_at=start)
    return SegmentScan(header, tuple(records), offset, FORMAT)


def decode_batch(payload: bytes | memoryview, source: str) -> LoggedGroup:
    """A group of one statement. The rows share the payload's memory. Raises Corrupt: its checksum
    was right, it is not."""
    try:
        (length,) = _LENGTH.unpack_from(payload)
        start = _LENGTH.size + length
        head = BatchHead.model_validate_json(bytes(payload[_LENGTH.size : start]))
        with pa.ipc.open_stream(pa.py_buffer(payload).slice(start)) as reader:
            rows = reader.read_next_batch()
    except (struct.error, ValidationError, pa.ArrowInvalid, StopIteration) as error:
        raise Corrupt(source=source, reason="a logged batch cannot be decoded") from error
    statement = LoggedStatement(head.statement_id, head.version, rows.num_rows, head.schema_version)
    parts = [
        FamilyRows(family, stamped(own, [head.version], [own.num_rows]), RowKeys(own.column(KEY)))
        for family, own in sliced(rows)
    ]
    return LoggedGroup((statement,), tuple(parts))


def _record_at(view: memoryview, offset: int, epoch: int) -> Record | None:
    if len(view) - offset < _RECORD.size:
        return None
    magic, kind, length, durable, sequence, crc = _RECORD.unpack_from(view, offset)
    start = offset + _RECORD.size
    if magic != RECORD_MAGIC or len(view) - start < length:
        return None
    payload = view[start : start + length]
    if crc != zlib.crc32(payload, zlib.crc32(view[offset : start - _CRC_BYTES])):
        return None
    type_ = RecordType.GROUP if kind == _BATCH else 0
    return Record(type_, LogPosition(epoch, sequence), durable, payload)
