"""`metasrv export T FILE`: the rows of a table as Parquet, CSV, NDJSON or an Arrow stream.

One page of rows is held at a time. A file appears under its name once it is whole.
"""

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import pyarrow as pa
import typer

from metasrv.cli.options import AsJson, TableArg, Url, service
from metasrv.cli.output import show_json
from metasrv.cli.progress import EXIT_INTERRUPTED, bar
from metasrv.cli.rows.row_writers import RowFormat, row_writer
from metasrv.cli.rows.rows_text import bound_of, types_of
from metasrv_base.rows.layout import spelled

ENDINGS = {
    ".parquet": RowFormat.PARQUET,
    ".csv": RowFormat.CSV,
    ".ndjson": RowFormat.NDJSON,
    ".jsonl": RowFormat.NDJSON,
    ".arrow": RowFormat.ARROW,
}
GZIP = ".gz"


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="x.parquet, x.csv, x.ndjson, x.csv.gz; `-` is stdout: --format"
        ),
    ],
    format: Annotated[
        RowFormat | None, typer.Option(help="Default: as the name of the file ends.")
    ] = None,
    columns: Annotated[str | None, typer.Option(help="Names, with commas between.")] = None,
    from_: Annotated[
        str | None, typer.Option("--from", help="First key, or its first values: 5, '[5, \"a\"]'.")
    ] = None,
    to: Annotated[str | None, typer.Option(help="The key before which to end.")] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows of a table to a file, replacing it, or to stdout."""
    chosen = format or format_of(file)
    with service(metasrv, as_json) as client:
        table, body = client.table(name), client.tables.get(name)
        known = [column.name for column in body.columns]
        names = None if columns is None else [spelled(one, known) for one in columns.split(",")]
        bounds = bound_of(body, from_, "--from"), bound_of(body, to, "--to")
        whole = table.schema()
        schema = whole if names is None else pa.schema([whole.field(one) for one in names])
        must_hold(chosen, schema)
        words, rows = f"export {name}", 0
        with (
            opened(file) as out,
            bar(words) as shown,
            row_writer(out, chosen, schema, types_of(body)) as write,
        ):
            for batch in table.scan(names, *bounds):
                write(batch)
                rows += batch.num_rows
                shown.tell(words, rows, None)
    if str(file) == "-":
        return
    if as_json:
        show_json({"table": name, "file": str(file), "format": chosen, "rows": rows})
    else:
        typer.echo(f"{rows} rows of {name} written to {file}")


def format_of(file: Path) -> RowFormat:
    """Raises BadParameter for a name that ends in no format."""
    plain = file.with_suffix("") if file.suffix == GZIP else file
    found = ENDINGS.get(plain.suffix.lower())
    if found is None:
        ends = " ".join(ENDINGS)
        raise typer.BadParameter(f"FILE {file}: give --format, or a name that ends in {ends}")
    return found


def must_hold(format: RowFormat, schema: pa.Schema) -> None:
    """Raises BadParameter for columns that the format cannot hold."""
    binary = [field.name for field in schema if pa.types.is_binary(field.type)]
    if format is RowFormat.CSV and binary:
        names = ", ".join(binary)
        raise typer.BadParameter(f"CSV holds no binary column ({names}); export to Parquet")


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The file to write, beside its place until it is whole. Raises BadParameter; an interrupt
    leaves no file and ends the command."""
    if str(file) == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as plain:
            if file.suffix == GZIP:
                with gzip.open(plain, "wb") as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield plain
        part.replace(file)
    except OSError as error:
        raise typer.BadParameter(f"FILE {file}: {error.strerror or error}") from error
    except KeyboardInterrupt:
        typer.echo(f"interrupted; {file} was not written", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        part.unlink(missing_ok=True)
