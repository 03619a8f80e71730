"""`metasrv scan T`: rows to look at, or a stream of them for another program."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import chain
from typing import Annotated

import pyarrow as pa
import typer

from metasrv.cli.options import TableArg, Url, service
from metasrv.cli.output import show_json, show_table
from metasrv.cli.progress import bar
from metasrv.cli.rows.row_values import lookup
from metasrv.cli.rows.row_writers import RowFormat, row_writer
from metasrv.cli.rows.rows_text import bound_of, entry_of, json_rows, types_of
from metasrv.sdk.sync import Table
from metasrv_base.rows.layout import spelled
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import Value

TABLE_ROWS = 100
"""Of the format for people, unless --limit says another number."""


class Format(StrEnum):
    TABLE = "table"
    NDJSON = "ndjson"
    CSV = "csv"
    ARROW = "arrow"


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    format: Annotated[Format, typer.Option(help="`arrow` is an IPC stream.")] = Format.TABLE,
    columns: Annotated[str | None, typer.Option(help="Names, with commas between.")] = None,
    index: Annotated[
        str | None,
        typer.Option(help="In its order; --eq, --from and --to are of its columns."),
    ] = None,
    eq: Annotated[
        str | None, typer.Option(help="With --index: values, or the first ones: 5, '[5, \"a\"]'.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="First key, or its first values: 5, '[5, \"a\"]'.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="The key before which to end.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Rows with that value, by the key or by an index that begins with it. Repeated.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Rows. Default: {TABLE_ROWS} for table, else all.")
    ] = None,
    metasrv: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of rows as JSON.")] = False,
) -> None:
    """Live rows, region by region, in key order within each; or in the order of an index."""
    if eq is not None and index is None:
        raise typer.BadParameter("--eq goes with --index")
    if where and (index is not None or from_ is not None or to is not None):
        raise typer.BadParameter("--where goes without --index, --from and --to")
    with service(metasrv, as_json) as client, _unless_nobody_reads():
        table, body = client.table(name), client.tables.get(name)
        if format is Format.TABLE and limit is None:
            limit = TABLE_ROWS
        known = [column.name for column in body.columns]
        wanted = None if columns is None else [spelled(one, known) for one in columns.split(",")]
        schema = table.schema() if wanted is None else None
        if where:
            found = _found(table, *lookup(body, where), wanted, limit)
        elif index is None:
            bounds = bound_of(body, from_, "--from"), bound_of(body, to, "--to")
            found = table.scan(wanted, bounds[0], bounds[1])
        else:
            values, first, end = (
                entry_of(body, index, text, option)
                for text, option in ((eq, "--eq"), (from_, "--from"), (to, "--to"))
            )
            pages = table.find(index, values, first, end, limit or sys.maxsize)
            found = (page.select(wanted or page.schema.names) for page in pages)
        batches = counted(_limited(found, limit), name)
        if as_json:
            show_json([row for one in batches for row in json_rows(one, types_of(body))])
        else:
            write(batches, format, types_of(body), schema)


def _found(
    table: Table,
    index: str | None,
    values: tuple[Value | None, ...],
    columns: list[str] | None,
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    """The rows with those values of *index*; None: the row with that key."""
    if index is not None:
        pages = table.find(index, values, limit=limit or sys.maxsize)
        yield from (page.select(columns or page.schema.names) for page in pages)
        return
    row = table.get(values)
    whole = table.schema()
    batch = pa.RecordBatch.from_pylist([] if row is None else [row], schema=whole)
    yield batch.select(columns or whole.names)


def write(
    batches: Iterator[pa.RecordBatch],
    format: Format,
    types: dict[str, ColumnType],
    schema: pa.Schema | None,
) -> None:
    """To stdout. `schema`: of the stream if there are no rows at all."""
    if format is Format.TABLE:
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
    """With a bar on stderr, unless the rows themselves go to the same screen."""
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
