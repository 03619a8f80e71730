"""`metasrv scan T`: rows to look at, or a stream of them for another program."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, BinaryIO

import pyarrow as pa
import pyarrow.csv
import typer

from metasrv.cli.options import TableArg, Url, service
from metasrv.cli.output import show_json, show_table
from metasrv.cli.progress import bar
from metasrv.cli.rows.rows_text import bound_of, entry_of, json_rows, types_of
from metasrv_base.rows.layout import spelled
from metasrv_base.schema.types import ColumnType

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
    limit: Annotated[
        int | None, typer.Option(min=1, help=f"Rows. Default: {TABLE_ROWS} for table, else all.")
    ] = None,
    metasrv: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="A list of rows as JSON.")] = False,
) -> None:
    """Live rows, region by region, in key order within each; or in the order of an index."""
    if eq is not None and index is None:
        raise typer.BadParameter("--eq goes with --index")
    with service(metasrv, as_json) as client, _unless_nobody_reads():
        table, body = client.table(name), client.tables.get(name)
        if format is Format.TABLE and limit is None:
            limit = TABLE_ROWS
        known = [column.name for column in body.columns]
        wanted = None if columns is None else [spelled(one, known) for one in columns.split(",")]
        schema = table.schema() if wanted is None else None
        if index is None:
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


def write(
    batches: Iterator[pa.RecordBatch],
    format: Format,
    types: dict[str, ColumnType],
    schema: pa.Schema | None,
) -> None:
    """To stdout. `schema`: of the stream if there are no rows at all."""
    out = sys.stdout.buffer
    if format in (Format.TABLE, Format.NDJSON):
        rows = (row for batch in batches for row in json_rows(batch, types))
        if format is Format.NDJSON:
            out.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
        else:
            found = list(rows)
            show_table(list(found[0]) if found else ["no rows"], [list(r.values()) for r in found])
        return
    first = next(batches, None)
    schema = first.schema if first is not None else schema
    if schema is None:
        return
    with _writer(format, out, schema) as writer:
        for batch in (first, *batches) if first is not None else ():
            writer.write_batch(batch)


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


def _writer(format: Format, out: BinaryIO, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
    if format is Format.CSV:
        return pyarrow.csv.CSVWriter(out, schema)
    return pa.ipc.new_stream(out, schema)


@contextmanager
def _unless_nobody_reads() -> Iterator[None]:
    """`metasrv scan t --format ndjson | head` is no error."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
