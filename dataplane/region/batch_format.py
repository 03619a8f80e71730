"""The payload of a BATCH record: a JSON head with the batch's version, then Arrow IPC bytes."""

import struct
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from base.errors import Corrupt

_LENGTH = struct.Struct("<I")


class BatchHead(BaseModel):
    """What a logged batch says of itself. `version` is the row version of all its rows; `family`
    is where those belong that do not say it (families.py)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal[1] = 1
    family: Literal["rows"] = "rows"
    version: int
    statement_id: str
    schema_version: int


@dataclass(frozen=True, slots=True)
class LoggedBatch:
    """One atomic batch in the log's schema (`families.assembled` when it was written)."""

    head: BatchHead
    rows: pa.RecordBatch


def encode_batch(batch: LoggedBatch) -> bytes:
    head = batch.head.model_dump_json().encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.rows.schema) as writer:
        writer.write_batch(batch.rows)
    return b"".join((_LENGTH.pack(len(head)), head, sink.getvalue()))


def decode_batch(payload: bytes, source: str) -> LoggedBatch:
    """The rows share the payload's memory. Raises Corrupt: its checksum was right, it is not."""
    try:
        (length,) = _LENGTH.unpack_from(payload)
        start = _LENGTH.size + length
        head = BatchHead.model_validate_json(payload[_LENGTH.size : start])
        with pa.ipc.open_stream(pa.py_buffer(payload).slice(start)) as reader:
            return LoggedBatch(head, reader.read_next_batch())
    except (struct.error, ValidationError, pa.ArrowInvalid, StopIteration) as error:
        raise Corrupt(source=source, reason="a logged batch cannot be decoded") from error
