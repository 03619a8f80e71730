"""Rows of a table into a file, one page of them held at a time.

The file appears under its name once it is whole.
"""

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import typer

from metasrv.cli.progress import bar
from metasrv.cli.rows.row_format import GZIP, STDIN, RowFormat
from metasrv.cli.rows.row_writers import row_writer
from metasrv.cli.rows.rows_text import bound_of, types_of
from metasrv.cli.rows.whole_file import whole_file
from metasrv.sdk.sync import Client
from metasrv_base.rows.layout import spelled


@dataclass(frozen=True, slots=True)
class Export:
    """Options of the command, as the user wrote them."""

    file: Path
    format: RowFormat
    columns: str | None
    from_: str | None
    to: str | None


def export(client: Client, name: str, request: Export) -> int:
    """Returns the rows written. Raises BadParameter, Refused, NotFound."""
    table, body = client.table(name), client.tables.get(name)
    column_names = [column.name for column in body.columns]
    columns = request.columns
    names = (
        None
        if columns is None
        else [spelled(column, column_names) for column in columns.split(",")]
    )
    bounds = bound_of(body, request.from_, "--from"), bound_of(body, request.to, "--to")
    whole = table.schema()
    schema = whole if names is None else pa.schema([whole.field(column) for column in names])
    must_hold(request.format, schema)
    words, rows = f"export {name}", 0
    with (
        opened(request.file) as out,
        bar(words) as shown,
        row_writer(out, request.format, schema, types_of(body)) as write,
    ):
        for batch in table.scan(names, *bounds):
            write(batch)
            rows += batch.num_rows
            shown.tell(words, rows, None)
    return rows


def must_hold(format: RowFormat, schema: pa.Schema) -> None:
    """Raises BadParameter for columns that the format cannot hold."""
    binary = [field.name for field in schema if pa.types.is_binary(field.type)]
    if format is RowFormat.CSV and binary:
        names = ", ".join(binary)
        raise typer.BadParameter(f"CSV holds no binary column ({names}); export to Parquet")


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """Standard output, or the file as `whole_file` writes it; packed if its name ends so."""
    if str(file) == STDIN:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    with whole_file(file) as plain:
        if file.suffix == GZIP:
            with gzip.open(plain, "wb") as packed:
                yield cast(BinaryIO, packed)
        else:
            yield plain
