"""Lines of a CSV or NDJSON file without those that cannot be read, for `import --skip-bad`.

Arrow refuses a whole block for one line. A block that it refuses is halved until the line is found,
so that what is read is read by the same rules as without the option.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import pyarrow as pa

from metasrv.cli.file_faults import UTF_8, Dialect, in_our_types, line_fault

BLOCK_LINES = 5_000
RECORD_CHARS_MAX = 1 << 20
"""A record with an open quote that is longer is a stray quote."""
LISTED_MAX = 10
Read = Callable[[io.BytesIO], pa.RecordBatch]
"""Reads the header and some lines. Raises ArrowException."""


@dataclass
class Skipped:
    """Lines that were left out."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)
    """Line and reason of the first ten; the header is line 1."""

    def add(self, line: int, reason: str) -> None:
        self.count += 1
        if len(self.first) < LISTED_MAX:
            self.first.append((line, reason))


def readable(
    path: Path, dialect: Dialect, table_schema: pa.Schema, read: Read, skipped: Skipped
) -> Iterator[pa.RecordBatch]:
    """Batches of all lines but those that are added to *skipped*. Raises OSError, UnicodeError."""
    is_csv = path.suffix.lower() == ".csv"
    with path.open(encoding=dialect.encoding, newline="") as file:
        head = file.readline() if is_csv else ""
        blocks = _Blocks(head, table_schema, read, skipped, dialect)
        numbered = enumerate(file, 2 if is_csv else 1)
        records = _whole(numbered) if is_csv else numbered
        while block := list(islice(records, BLOCK_LINES)):
            yield from blocks.batches(block)


def _whole(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Records of CSV: a line goes on in the next while a quote is open, for a bounded length."""
    number, text = 0, ""
    for line_number, line in lines:
        number, text = (number, text + line) if text else (line_number, line)
        if text.count('"') % 2 == 0 or len(text) > RECORD_CHARS_MAX:
            yield number, text
            text = ""
    if text:
        yield number, text


@dataclass(frozen=True)
class _Blocks:
    head: str
    table_schema: pa.Schema
    read: Read
    skipped: Skipped
    dialect: Dialect

    def batches(self, records: Sequence[tuple[int, str]]) -> Iterator[pa.RecordBatch]:
        """Yields batches of the records that fit the table. *records* each have the number of their
        first line."""
        text = "".join(record for _, record in records)
        if not text.strip():
            return
        try:
            batch = self.read(io.BytesIO((self.head + text).encode(UTF_8)))
            _must_fit(batch, self.table_schema)
        except pa.ArrowException as error:
            if len(records) == 1:
                reason = line_fault(str(error), self.head, self.dialect)
                self.skipped.add(records[0][0], reason)
                return
            half = len(records) // 2
            yield from self.batches(records[:half])
            yield from self.batches(records[half:])
        else:
            yield batch


def _must_fit(batch: pa.RecordBatch, table_schema: pa.Schema) -> None:
    """Raises ArrowInvalid for nulls, and for texts in place of times, that Arrow lets pass and the
    table does not."""
    for read_field in batch.schema:
        position = table_schema.get_field_index(read_field.name)
        if position < 0:
            continue
        table_field = table_schema.field(position)
        if not table_field.nullable and batch.column(read_field.name).null_count:
            raise pa.ArrowInvalid(f"column {read_field.name}: null, and it takes none")
        if pa.types.is_timestamp(table_field.type) and pa.types.is_string(read_field.type):
            raise pa.ArrowInvalid(in_our_types(f"column {read_field.name}: no {table_field.type}"))
