"""Writers of rows in the formats that programs read, one batch at a time."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from metasrv.cli.rows.row_format import RowFormat
from metasrv.cli.rows.rows_text import json_rows
from metasrv_base.schema.types import ColumnType

WriteBatch = Callable[[pa.RecordBatch], None]


@contextmanager
def row_writer(
    out: BinaryIO, format: RowFormat, schema: pa.Schema, types: Mapping[str, ColumnType]
) -> Iterator[WriteBatch]:
    """Writes batches of *schema* to *out*, which stays open."""
    if format is RowFormat.NDJSON:
        yield lambda batch: out.writelines(
            json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in json_rows(batch, types)
        )
        return
    with _arrow_writer(out, format, schema) as writer:
        yield writer.write_batch


def _arrow_writer(
    out: BinaryIO, format: RowFormat, schema: pa.Schema
) -> "pq.ParquetWriter | pa.ipc.RecordBatchStreamWriter":
    match format:
        case RowFormat.PARQUET:
            return pq.ParquetWriter(out, schema)
        case RowFormat.CSV:
            return pyarrow.csv.CSVWriter(out, schema)
    return pa.ipc.new_stream(out, schema)
