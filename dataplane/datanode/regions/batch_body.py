"""An Arrow body as one record batch of sound memory; whether it fits, the region says."""

import pyarrow as pa
from pydantic import ValidationError

from metasrv_base.errors import Refused
from metasrv_base.rows.arrow_guard import check_messages
from metasrv_base.wire.http import strict_json
from metasrv_base.wire.limits import BATCH_BYTES_MAX, BATCH_ROWS_MAX
from metasrv_base.wire.node.batches import HEADER_KEY, BatchHeader
from metasrv_base.wire.problem.problems import field_errors


def read_batch(body: bytes) -> tuple[BatchHeader, pa.RecordBatch]:
    """The header, and the rows of all record batches of the stream as one, fully validated.

    Blocking (seconds for 64 MiB). Raises Refused.
    """
    try:
        check_messages(body)
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            header = _header(reader.schema.metadata or {})
            rows = _whole(reader)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise _refused(f"the body is no Arrow IPC stream: {error}") from error
    return header, rows


def _header(metadata: dict[bytes, bytes]) -> BatchHeader:
    text = metadata.get(HEADER_KEY)
    if text is None:
        raise _refused(f"the schema's metadata lacks {HEADER_KEY.decode()}")
    value = strict_json.parse(text)
    try:
        return BatchHeader.model_validate(value)
    except ValidationError as error:
        raise Refused("invalid-request", errors=field_errors(error.errors(), value)) from error


def _whole(reader: pa.RecordBatchReader) -> pa.RecordBatch:
    parts: list[pa.RecordBatch] = []
    total_bytes = total_rows = 0
    for part in reader:
        part.validate(full=True)
        total_bytes, total_rows = total_bytes + part.nbytes, total_rows + part.num_rows
        if total_bytes > BATCH_BYTES_MAX or total_rows > BATCH_ROWS_MAX:
            raise Refused("body-too-large", limit_bytes=BATCH_BYTES_MAX, limit_rows=BATCH_ROWS_MAX)
        parts.append(part)
    if len(parts) == 1:
        return parts[0]
    table = pa.Table.from_batches(parts, reader.schema).combine_chunks()
    merged: list[pa.RecordBatch] = table.to_batches()
    return merged[0] if merged else pa.RecordBatch.from_pylist([], schema=reader.schema)


def _refused(reason: str) -> Refused:
    return Refused("invalid-request", reason=reason)
