"""`metasrv scan T`: rows to look at, or a stream of them for another program."""

from enum import StrEnum
from typing import Annotated

import typer

from metasrv.cli.complete import column_names, column_values, index_names
from metasrv.cli.options import MaxLag, TableArg, Url, service

TABLE_ROWS = 100
"""Rows in the format for people, unless --limit gives another number."""


class Format(StrEnum):
    TABLE = "table"
    NDJSON = "ndjson"
    CSV = "csv"
    ARROW = "arrow"


Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to show, separated by commas.",
        metavar="COLUMN,...",
        autocompletion=column_names,
    ),
]
Index = Annotated[
    str | None,
    typer.Option(
        help="Read in the order of this index; --eq, --from and --to name its columns.",
        metavar="INDEX",
        autocompletion=index_names,
    ),
]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    format: Annotated[
        Format, typer.Option(help="Output format; `arrow` is an IPC stream.")
    ] = Format.TABLE,
    columns: Columns = None,
    index: Index = None,
    eq: Annotated[
        str | None,
        typer.Option(
            help="With --index: the values, or the first ones: 5, '[5, \"a\"]'.", metavar="VALUES"
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", help="First key, or its first values: 5, '[5, \"a\"]'.", metavar="KEY"
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(help="Stop before this key.", metavar="KEY")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Only rows with this value. The key or an index must begin with COLUMN. May be "
            "repeated.",
            autocompletion=column_values,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"Most rows to read. Default: {TABLE_ROWS} for table, else all.",
            metavar="N",
        ),
    ] = None,
    max_lag: MaxLag = None,
    metasrv: Url = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a list of rows as JSON.")] = False,
) -> None:
    """Read the rows of a table, in key order within each region, or in the order of an index.

    Rows are read as they are now: a table keeps the older versions of its definition, which
    `metasrv table get --as-of` shows, but not those of its rows.
    """
    if eq is not None and index is None:
        raise typer.BadParameter("--eq goes with --index")
    if where and (index is not None or from_ is not None or to is not None):
        raise typer.BadParameter("--where goes without --index, --from and --to")
    if format is Format.TABLE and limit is None and not as_json:
        limit = TABLE_ROWS
    from metasrv.cli.rows.scan_rows import ScanOptions, scan

    options = ScanOptions(columns, index, eq, from_, to, tuple(where or ()), limit, max_lag)
    with service(metasrv, as_json, {"/columns": "--columns"}) as client:
        scan(client, name, options, "json" if as_json else format)
