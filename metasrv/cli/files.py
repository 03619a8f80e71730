"""Files of rows as Arrow batches: Parquet, CSV and NDJSON, read as they are needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from base.errors import Refused

BLOCK_BYTES = 8 << 20
"""Read at once; the first block of a text file decides the types of columns nobody has said."""
PARQUET_ROWS = 20_000
ENDINGS = (".parquet", ".csv", ".ndjson", ".jsonl")


@dataclass(frozen=True)
class RowFile:
    """An open file."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None
    """None: a text file does not say."""


@contextmanager
def row_file(path: Path, known: pa.Schema | None = None) -> Iterator[RowFile]:
    """`known`: the table's columns, whose types are taken instead of guesses.

    Raises Refused for a file that is not there, or is not what its name says.
    """
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        expected = "a name that ends in " + " ".join(ENDINGS)
        raise Refused("invalid-request", pointer="/file", found=path.name, expected=expected)
    try:
        if kind == ".parquet":
            with pq.ParquetFile(path) as parquet:
                batches = parquet.iter_batches(PARQUET_ROWS)
                yield RowFile(parquet.schema_arrow, batches, parquet.metadata.num_rows)
        elif kind == ".csv":
            with _csv(path, known) as reader:
                yield RowFile(reader.schema, iter(reader), None)
        else:
            with _ndjson(path, known) as reader:
                yield RowFile(reader.schema, iter(reader), None)
    except (OSError, pa.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise Refused("invalid-request", pointer="/file", reason=f"{path}: {reason}") from error


def _csv(path: Path, known: pa.Schema | None) -> pa.RecordBatchReader:
    convert = pyarrow.csv.ConvertOptions(
        column_types=guidance(known), strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    read = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES)
    return pyarrow.csv.open_csv(path, read_options=read, convert_options=convert)


def _ndjson(path: Path, known: pa.Schema | None) -> pa.RecordBatchReader:
    schema = None if known is None else pa.schema(list(guidance(known).items()))
    parse = pyarrow.json.ParseOptions(explicit_schema=schema)
    read = pyarrow.json.ReadOptions(block_size=BLOCK_BYTES)
    return pyarrow.json.open_json(path, read_options=read, parse_options=parse)


def guidance(known: pa.Schema | None) -> dict[str, pa.DataType]:
    """Types to read a text as. Times are left to the reader, who knows more ways to write them."""
    return {
        field.name: field.type for field in known or () if not pa.types.is_timestamp(field.type)
    }
