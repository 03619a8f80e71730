"""The rows that `metasrv scan` shows, in one of its formats."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa

from metasrv.cli.output import show_json, show_table
from metasrv.cli.progress import bar
from metasrv.cli.rows.row_format import RowFormat
from metasrv.cli.rows.row_values import lookup
from metasrv.cli.rows.row_writers import row_writer
from metasrv.cli.rows.rows_text import bound_of, entry_of, json_rows, types_of
from metasrv.sdk.sync import Client
from metasrv.sdk.sync_table import Table
from metasrv_base.rows.layout import spelled
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import Value
from metasrv_base.wire.api.tables import TableBody

TABLE = "table"
JSON = "json"


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """Options of the command, as the user wrote them."""

    columns: str | None
    index: str | None
    eq: str | None
    from_: str | None
    to: str | None
    where: tuple[str, ...]
    limit: int | None
    """Rows; None: all."""
    max_lag: int | None = None
    """The age in ms that rows may have; None: leaders answer."""


def scan(client: Client, name: str, options: ScanOptions, format: str) -> None:
    """Writes the rows to stdout. *format*: `table`, `json`, or a RowFormat. Raises Refused,
    NotFound."""
    with _unless_nobody_reads():
        table, body = client.table(name), client.tables.get(name)
        column_names = [column.name for column in body.columns]
        columns = options.columns
        names = (
            None
            if columns is None
            else [spelled(column, column_names) for column in columns.split(",")]
        )
        schema = table.schema() if names is None else None
        batches = counted(_limited(_pages(table, body, options, names), options.limit), name)
        if format == JSON:
            show_json([row for batch in batches for row in json_rows(batch, types_of(body))])
        else:
            write(batches, format, types_of(body), schema)


def _pages(
    table: Table, body: TableBody, options: ScanOptions, names: list[str] | None
) -> Iterator[pa.RecordBatch]:
    if options.where:
        return _found(table, lookup(body, options.where), names, options)
    if options.index is None:
        bounds = bound_of(body, options.from_, "--from"), bound_of(body, options.to, "--to")
        return table.scan(names, *bounds, max_lag=options.max_lag)
    values, first, end = (
        entry_of(body, options.index, text, option)
        for text, option in ((options.eq, "--eq"), (options.from_, "--from"), (options.to, "--to"))
    )
    limit = options.limit or sys.maxsize
    pages = table.find(options.index, values, first, end, limit, max_lag=options.max_lag)
    return (page.select(names or page.schema.names) for page in pages)


def _found(
    table: Table,
    indexed: tuple[str | None, tuple[Value | None, ...]],
    columns: list[str] | None,
    options: ScanOptions,
) -> Iterator[pa.RecordBatch]:
    """The rows with those values of an index; of None: the row with that key."""
    index, values = indexed
    if index is not None:
        limit = options.limit or sys.maxsize
        pages = table.find(index, values, limit=limit, max_lag=options.max_lag)
        yield from (page.select(columns or page.schema.names) for page in pages)
        return
    row = table.get(values, max_lag=options.max_lag)
    whole = table.schema()
    batch = pa.RecordBatch.from_pylist([] if row is None else [row], schema=whole)
    yield batch.select(columns or whole.names)


def write(
    batches: Iterator[pa.RecordBatch],
    format: str,
    types: dict[str, ColumnType],
    schema: pa.Schema | None,
) -> None:
    """Writes rows to stdout. `schema`: the stream's, if there are no rows at all."""
    if format == TABLE:
        rows = [row for batch in batches for row in json_rows(batch, types)]
        show_table(list(rows[0]) if rows else ["no rows"], [list(row.values()) for row in rows])
        return
    first = next(batches, None)
    schema = first.schema if first is not None else schema
    if schema is None:
        return
    with row_writer(sys.stdout.buffer, RowFormat(format), schema, types) as write_batch:
        for batch in chain((first,) if first is not None else (), batches):
            write_batch(batch)


def counted(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    """Counts the rows with a bar on stderr, unless the rows themselves go to the same screen."""
    if sys.stdout.isatty():
        yield from batches
        return
    rows = 0
    with bar(f"scan {name}") as shown:
        for batch in batches:
            yield batch
            rows += batch.num_rows
            shown.tell(f"scan {name}", rows, None)


def _limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    if limit is None:
        yield from batches
        return
    left = limit
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


@contextmanager
def _unless_nobody_reads() -> Iterator[None]:
    """`metasrv scan t --format ndjson | head` is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
