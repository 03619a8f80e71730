"""`metasrv import T FILE`: a file of rows into a table, which `--create` makes first.

Rows go as statements; with `--bulk`, Parquet files are read by the servers' Spark.
"""

import codecs
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.catalog.column_text import named_types
from metasrv.cli.complete import new_columns
from metasrv.cli.file_faults import PLAIN, UTF_8, Dialect
from metasrv.cli.options import AsJson, TableArg, Url, service
from metasrv.cli.rows.row_format import GZIP, STDIN


class FileFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"


BatchRows = Annotated[
    int, typer.Option(min=1, max=1_000_000, help="Number of rows in one request.", metavar="N")
]
Delimiter = Annotated[
    str, typer.Option(help="CSV: character between fields; `\\t` is a tab.", metavar="CHARACTER")
]
Format = Annotated[
    FileFormat | None, typer.Option(help="Format. Default: by the extension of the file.")
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad", help="CSV, NDJSON: leave out lines that cannot be read, and list them."
    ),
]
Encoding = Annotated[
    str, typer.Option(help="CSV: encoding of the text, e.g. latin-1.", metavar="ENCODING")
]
Nulls = Annotated[
    list[str] | None,
    typer.Option(
        help="CSV: a text that means null, as an empty field does. May be repeated.", metavar="TEXT"
    ),
]
JudgeOnly = Annotated[
    bool, typer.Option("--dry-run", help="Read and check every row, and load none.")
]


File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="x.parquet, x.csv, x.ndjson or x.csv.gz; `-` is stdin, with --format. A folder of "
        "x.parquet is loaded as with --bulk.",
    ),
]
Create = Annotated[
    bool, typer.Option("--create", help="Create the table from the file, and show it.")
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        help="With --create: a column of the primary key. May be repeated.", metavar="COLUMN"
    ),
]
Partitions = Annotated[
    int, typer.Option(min=1, help="With --create: number of regions.", metavar="N")
]
Types = Annotated[
    str | None,
    typer.Option(
        help="With --create: types in place of the inferred ones, as 'a:int64,b:decimal(10,2)'.",
        metavar="NAME:TYPE,...",
        autocompletion=new_columns,
    ),
]
Insert = Annotated[
    bool,
    typer.Option("--insert", help="Stop at a key that exists. Default: replace its row."),
]
Bulk = Annotated[
    bool,
    typer.Option(
        "--bulk",
        help="Have the servers' Spark load Parquet files, all or nothing, from the same path "
        "there. The table must have no index.",
    ),
]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: File,
    create: Create = False,
    key: Key = None,
    types: Types = None,
    partitions: Partitions = 1,
    insert: Insert = False,
    bulk: Bulk = False,
    null: Nulls = None,
    encoding: Encoding = UTF_8,
    delimiter: Delimiter = ",",
    format: Format = None,
    dry_run: JudgeOnly = False,
    skip_bad: SkipBad = False,
    batch_rows: BatchRows = 5000,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Load a Parquet, CSV or NDJSON file into a table.

    An import that failed can be repeated from the start, except with --insert.
    """
    bulk = bulk or file.is_dir()
    by_rows = insert or dry_run or skip_bad
    if types is not None and not create:
        raise typer.BadParameter("--types goes with --create only: the table has its types")
    _must_go_together(bool(key), create=create, by_rows=by_rows, bulk=bulk)
    ending = _ending(file, format)
    dialect = dialect_of(ending or ending_of(file), null or [], encoding, delimiter)
    given_types = named_types(types, "--types") if types is not None else {}
    from metasrv.cli.rows.load_rows import Creation, Import, run

    request = Import(
        file=file,
        ending=ending,
        dialect=dialect,
        create=Creation(tuple(key or ()), partitions, given_types) if create else None,
        op="insert" if insert else "upsert",
        is_bulk=bulk,
        is_dry_run=dry_run,
        batch_rows=batch_rows,
        skips=skip_bad,
    )
    with service(metasrv, as_json) as client:
        run(client, name, request, as_json=as_json)


def _must_go_together(has_key: bool, *, create: bool, by_rows: bool, bulk: bool) -> None:
    if create != has_key:
        raise typer.BadParameter("--create needs --key, and --key goes with --create only")
    if bulk and by_rows:
        raise typer.BadParameter("--bulk takes no --insert, --dry-run or --skip-bad")


def _ending(file: Path, format: FileFormat | None) -> str | None:
    """The ending that --format means. Raises BadParameter for a file that is not there."""
    if str(file) != STDIN and not file.exists():
        raise typer.BadParameter(f"there is no file {file}")
    return f".{format}" if format else None


def ending_of(file: Path) -> str:
    """The ending that names the format, as `.csv`. Raises BadParameter for stdin."""
    if str(file) == STDIN:
        raise typer.BadParameter("FILE -: stdin has no name, so give its --format")
    return (file.with_suffix("") if file.suffix.lower() == GZIP else file).suffix.lower()


def dialect_of(ending: str, nulls: list[str], encoding: str, delimiter: str) -> Dialect:
    """Raises BadParameter."""
    separator = delimiter.replace("\\t", "\t")
    dialect = Dialect(tuple(nulls), encoding, separator)
    if dialect != PLAIN and ending != ".csv":
        raise typer.BadParameter("--null, --encoding and --delimiter go with CSV files only")
    if len(separator) != 1:
        raise typer.BadParameter(f"--delimiter {delimiter}: give one character")
    try:
        return replace(dialect, encoding=codecs.lookup(encoding).name)
    except LookupError as error:
        examples = "utf-8, latin-1, cp1252, utf-16"
        raise typer.BadParameter(f"{encoding} is no encoding: {examples}") from error
