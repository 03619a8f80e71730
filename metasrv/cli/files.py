"""Files of rows as Arrow batches: Parquet, CSV and NDJSON, read as they are needed."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from metasrv.cli.errors.places import FILE
from metasrv.cli.file_faults import PLAIN, UTF_8, Dialect, faulty
from metasrv.cli.skipping import Read, Skipped, readable
from metasrv_base.errors import Refused
from metasrv_base.rows.layout import spelled

BLOCK_BYTES = 8 << 20
"""Read at once; the first block of a text file decides the types of columns nobody has said."""
PARQUET_ROWS = 20_000
COLUMNS_SHOWN_MAX = 20
ENDINGS = (".parquet", ".csv", ".ndjson", ".jsonl")


@dataclass(frozen=True)
class RowFile:
    """An open file."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    rows: int | None
    """The number of rows; None in a text file, which does not say."""


@contextmanager
def row_file(
    path: Path,
    table_schema: pa.Schema | None = None,
    dialect: Dialect = PLAIN,
    skipped: Skipped | None = None,
) -> Iterator[RowFile]:
    """`table_schema`: the table's columns, whose types are taken instead of guesses. *skipped*:
    takes the lines that cannot be read; it needs a `table_schema`. None: they are an error.

    Raises Refused for a file that is not there, or is not what its name says.
    """
    kind = path.suffix.lower()
    if kind not in ENDINGS:
        expected = "a name that ends in " + " ".join(ENDINGS)
        raise Refused("invalid-request", pointer=FILE, found=path.name, expected=expected)
    with _refusing(path, dialect):
        if kind == ".parquet":
            with pq.ParquetFile(path) as parquet:
                batches = _as_known(parquet.iter_batches(PARQUET_ROWS), table_schema)
                yield RowFile(parquet.schema_arrow, batches, parquet.metadata.num_rows)
            return
        if skipped is not None and table_schema is not None:
            lines = readable(
                path, dialect, table_schema, _reader(path, table_schema, dialect), skipped
            )
            yield RowFile(table_schema, _as_known(lines, table_schema), None)
            return
        with (
            _csv(path, table_schema, dialect)
            if kind == ".csv"
            else _ndjson(path, table_schema) as reader
        ):
            _must_be_text(path, reader.schema, table_schema, dialect)
            batches = _as_known(_read(reader, path, dialect), table_schema)
            yield RowFile(reader.schema, batches, None)


def must_have_columns(
    path: Path, names: Sequence[str], columns: Sequence[str], dialect: Dialect
) -> None:
    """Raises Refused for the first of *names*, of a file's header, that is none of the table's
    *columns*."""
    for name in names:
        if spelled(name, columns) in columns:
            continue
        close = get_close_matches(name, columns, n=1)
        is_text = path.suffix.lower() == ".csv"
        reason = f"the table has no column {name}"
        if is_text and len(names) == 1 and (mark := _mark_in(name, dialect)):
            reason += f"; if {mark} stands between the fields, say --delimiter {mark!r}"
        elif close:
            reason += f"; did you mean {close[0]}?"
        else:
            reason += f"; its columns: {', '.join(columns[:COLUMNS_SHOWN_MAX])}"
        line = "line 1: " if is_text else ""
        raise Refused("invalid-request", pointer=FILE, path=str(path), reason=line + reason)


def _mark_in(header: str, dialect: Dialect) -> str | None:
    """A character that often stands between fields, in a header that was not divided."""
    return next((mark for mark in ";\t|," if mark in header and mark != dialect.delimiter), None)


def _as_known(
    batches: Iterable[pa.RecordBatch], table_schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """Renames columns to the table's names where they differ in case alone."""
    names = () if table_schema is None else table_schema.names
    for batch in batches:
        yield batch.rename_columns([spelled(name, names) for name in batch.schema.names])


def _read(
    reader: Iterable[pa.RecordBatch], path: Path, dialect: Dialect
) -> Iterator[pa.RecordBatch]:
    with _refusing(path, dialect):
        yield from reader


@contextmanager
def _refusing(path: Path, dialect: Dialect) -> Iterator[None]:
    """Refused in the place of what Arrow and the system say of the file."""
    try:
        yield
    except (OSError, UnicodeError, pa.ArrowException) as error:
        _must_be_encoded(path, dialect)
        reason = faulty(path, str(error), dialect)
        raise Refused("invalid-request", pointer=FILE, path=str(path), reason=reason) from error


def _must_be_text(
    path: Path, file_schema: pa.Schema, table_schema: pa.Schema | None, dialect: Dialect
) -> None:
    """Arrow takes a text that is not UTF-8 for bytes. Raises Refused."""
    for field in file_schema:
        is_bytes = pa.types.is_binary(field.type)
        if is_bytes and (table_schema is None or field.name not in table_schema.names):
            _must_be_encoded(path, dialect)


def _must_be_encoded(path: Path, dialect: Dialect) -> None:
    """Raises Refused with the first line that is not in the encoding of a text file."""
    if path.suffix.lower() == ".parquet":
        return
    decoder = codecs.getincrementaldecoder(dialect.encoding)()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    decoder.decode(line)
                except UnicodeError as error:
                    raise _not_encoded(path, number, dialect) from error
    except OSError:
        return  # told as it is


def _not_encoded(path: Path, line: int, dialect: Dialect) -> Refused:
    return Refused(
        "invalid-request",
        pointer=FILE,
        path=str(path),
        reason=f"line {line} is not {dialect.encoding}; if the file is another text, name its "
        "encoding, as --encoding latin-1",
    )


def _reader(path: Path, table_schema: pa.Schema, dialect: Dialect) -> Read:
    """Reads some lines, already decoded, as the whole file would be."""
    decoded = replace(dialect, encoding=UTF_8)

    def read(lines: BytesIO) -> pa.RecordBatch:
        if path.suffix.lower() == ".csv":
            reader = _csv(lines, table_schema, decoded)
        else:
            reader = _ndjson(lines, table_schema)
        with reader:
            rows = reader.read_all()
        batches = rows.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)

    return read


def _csv(
    path: Path | BytesIO, table_schema: pa.Schema | None, dialect: Dialect
) -> pa.RecordBatchReader:
    """An empty field is null, and "" is an empty text: as PostgreSQL reads and we write."""
    read = pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES, encoding=dialect.encoding)
    types = guidance(table_schema)
    parse = pyarrow.csv.ParseOptions(delimiter=dialect.delimiter)
    if types:
        with pyarrow.csv.open_csv(path, read_options=read, parse_options=parse) as reader:
            header = reader.schema.names
        if isinstance(path, BytesIO):
            path.seek(0)
        types = {
            name: types[spelled(name, types)] for name in header if spelled(name, types) in types
        }
    convert = pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=["", *dialect.nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return pyarrow.csv.open_csv(
        path, read_options=read, parse_options=parse, convert_options=convert
    )


def _ndjson(path: Path | BytesIO, table_schema: pa.Schema | None) -> pa.RecordBatchReader:
    schema = None if table_schema is None else pa.schema(list(guidance(table_schema).items()))
    parse = pyarrow.json.ParseOptions(explicit_schema=schema)
    read = pyarrow.json.ReadOptions(block_size=BLOCK_BYTES)
    return pyarrow.json.open_json(path, read_options=read, parse_options=parse)


def guidance(table_schema: pa.Schema | None) -> dict[str, pa.DataType]:
    """Types to read a text as. Times are left to the reader, who knows more ways to write them."""
    return {
        field.name: field.type
        for field in table_schema or ()
        if not pa.types.is_timestamp(field.type)
    }
