"""`metasrv export T FILE`: the rows of a table as Parquet, CSV, NDJSON or an Arrow stream."""

from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.complete import catalog_names, column_names, schema_names, table_names
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_json
from metasrv.cli.rows.row_format import ENDINGS, GZIP, STDIN, RowFormat

TableOrNone = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="`t`, `public.t` or `main.public.t`; without one, definitions are written.",
        autocompletion=table_names,
    ),
]
OfCatalog = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="The catalog whose definitions are written.",
        autocompletion=catalog_names,
    ),
]
OfSchema = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Only definitions of this schema.", autocompletion=schema_names
    ),
]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableOrNone = "",
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="x.parquet, x.csv, x.ndjson or x.csv.gz; `-` is stdout, with --format",
        ),
    ] = None,
    format: Annotated[
        RowFormat | None, typer.Option(help="Format. Default: by the extension of the file.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns to write, separated by commas.",
            metavar="COLUMN,...",
            autocompletion=column_names,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from", help="First key, or its first values: 5, '[5, \"a\"]'.", metavar="KEY"
        ),
    ] = None,
    to: Annotated[str | None, typer.Option(help="Stop before this key.", metavar="KEY")] = None,
    catalog: OfCatalog = "main",
    schema: OfSchema = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows of a table to a file, replacing it, or to stdout.

    Without a TABLE, the definitions of a catalog are written to stdout as YAML, or with --json as
    JSON, which `metasrv apply` reads.
    """
    if not name:
        from metasrv.cli.language.export_definitions import export_definitions

        export_definitions(catalog, schema, metasrv, as_json=as_json)
        return
    if file is None:
        raise typer.BadParameter("FILE is missing")
    from metasrv.cli.rows.export_rows import Export, export

    request = Export(file, format or format_of(file), columns, from_, to)
    with service(metasrv, as_json) as client:
        rows = export(client, name, request)
    if str(file) == STDIN:
        return
    if as_json:
        show_json({"table": name, "file": str(file), "format": request.format, "rows": rows})
    else:
        typer.echo(f"{rows} rows of {name} written to {file}")


def format_of(file: Path) -> RowFormat:
    """Raises BadParameter for a name that ends in no format."""
    plain = file.with_suffix("") if file.suffix == GZIP else file
    row_format = ENDINGS.get(plain.suffix.lower())
    if row_format is None:
        ends = " ".join(ENDINGS)
        raise typer.BadParameter(f"FILE {file}: give --format, or a name that ends in {ends}")
    return row_format
