"""`metasrv import T FILE`: a file of rows into a table, which `--create` makes first.

Rows go as statements; with `--bulk`, Parquet files are read by the servers' Spark.
"""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from metasrv.cli.file_faults import PLAIN, UTF_8, Dialect
from metasrv.cli.files import row_file
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    TableArg,
    Url,
    service,
)
from metasrv.cli.output import show, show_json
from metasrv.cli.progress import EXIT_INTERRUPTED, bar, procedure_bar
from metasrv.cli.rows.plain_file import GZIP, STDIN, plain_file
from metasrv.sdk.control.infer import infer_spec
from metasrv.sdk.control.names import TableName
from metasrv.sdk.rows.loader import LoadOp, LoadResult
from metasrv.sdk.sync import Client, Table
from metasrv_base.errors import NotFound, Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.named import named_batch
from metasrv_base.wire.api.tables import TableSpec

IMPORT_S = 86_400.0  # of files of any size


class FileFormat(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    NDJSON = "ndjson"


Delimiter = Annotated[str, typer.Option(help="CSV: between fields, one character; `\\t` is a tab.")]
Format = Annotated[FileFormat | None, typer.Option(help="Default: as the name of the file ends.")]
JudgeOnly = Annotated[bool, typer.Option("--dry-run", help="Read and judge every row; load none.")]


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="x.parquet, x.csv, x.ndjson, x.csv.gz; `-` is stdin: --format. A folder of "
            "x.parquet: --bulk.",
        ),
    ],
    create: Annotated[
        bool, typer.Option("--create", help="Make the table from the file; shows what is made.")
    ] = False,
    key: Annotated[
        list[str] | None, typer.Option(help="With --create: a column of the primary key. Repeated.")
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="With --create: regions.")] = 1,
    insert: Annotated[
        bool,
        typer.Option("--insert", help="Stop at a key that is there. Default: replace its row."),
    ] = False,
    bulk: Annotated[
        bool,
        typer.Option(
            "--bulk",
            help="Parquet, all or nothing, read and sorted by the servers' Spark, where the same "
            "path leads to it. The table has no index.",
        ),
    ] = False,
    null: Annotated[
        list[str] | None,
        typer.Option(help="CSV: a field that is null besides the empty one, as NA. Repeated."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="CSV: of the text, as latin-1.")] = UTF_8,
    delimiter: Delimiter = ",",
    format: Format = None,
    dry_run: JudgeOnly = False,
    batch_rows: Annotated[int, typer.Option(min=1, max=1_000_000)] = 5000,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Load a file into a table. May be done again from the start, unless --insert."""
    bulk = bulk or file.is_dir()
    _must_go_together(bool(key), create=create, by_rows=insert or dry_run, bulk=bulk)
    ending = f".{format}" if format else None
    dialect = dialect_of(ending or ending_of(file), null or [], encoding, delimiter)
    with service(metasrv, as_json) as client, plain_file(file, ending) as path:
        source = ImportFile(path, dialect)
        if dry_run:
            _judge(client, name, source, key, as_json)
            return
        is_made = create and _create(client, name, source, (key or [], partitions), as_json)
        with _undone(client, name) if is_made else nullcontext():
            if bulk:
                _import(client, name, file, as_json)
                return
            table = client.table(name)
            result = _load(table, source, batch_rows, "insert" if insert else "upsert")
        kept = table.count() if is_made else None
    _say(name, result, kept, as_json)


def _must_go_together(has_key: bool, *, create: bool, by_rows: bool, bulk: bool) -> None:
    if create != has_key:
        raise typer.BadParameter("--create needs --key, and --key goes with --create only")
    if bulk and by_rows:
        raise typer.BadParameter("--bulk takes neither --insert nor --dry-run")


def _say(name: str, result: LoadResult, kept: int | None, as_json: bool) -> None:
    """*kept*: rows in a table that was made for the load."""
    replaced = result.replaced if kept is None else result.read - kept
    if as_json:
        done = {"read": result.read, "rows": result.rows, "batches": result.batches}
        show_json({"table": name, **done, "replaced": replaced})
        return
    typer.echo(f"{result.rows} rows loaded into {name} in {result.batches} batches")
    if replaced:
        said = f"{result.read} rows were read; {replaced} of them were replaced"
        typer.echo(f"{said} by later ones with the same key")


@dataclass(frozen=True, slots=True)
class ImportFile:
    file: Path
    dialect: Dialect


def ending_of(file: Path) -> str:
    """Of the format, as `.csv`. Raises BadParameter for stdin."""
    if str(file) == STDIN:
        raise typer.BadParameter("FILE -: stdin has no name, so give its --format")
    return (file.with_suffix("") if file.suffix.lower() == GZIP else file).suffix.lower()


def dialect_of(ending: str, nulls: list[str], encoding: str, delimiter: str) -> Dialect:
    """Raises BadParameter."""
    separator = delimiter.replace("\\t", "\t")
    found = Dialect(tuple(nulls), encoding, separator)
    if found != PLAIN and ending != ".csv":
        raise typer.BadParameter("--null, --encoding and --delimiter are of CSV files")
    if len(separator) != 1:
        raise typer.BadParameter(f"--delimiter {delimiter}: it is one character")
    try:
        return replace(found, encoding=codecs.lookup(encoding).name)
    except LookupError as error:
        known = "utf-8, latin-1, cp1252, utf-16"
        raise typer.BadParameter(f"{encoding} is no encoding: {known}") from error


def _judge(
    client: Client, name: str, source: ImportFile, key: list[str] | None, as_json: bool
) -> None:
    """Reads every row as a load would, and sends none. With a *key*: for the table to be made."""
    if key:
        spec = infer(name, source, key, 1)
        with row_file(source.file, None, source.dialect) as found:
            rows = sum(batch.num_rows for batch in found.batches)
        typer.echo(spec.model_dump_json(indent=2, exclude_defaults=True), err=as_json)
    else:
        layout = Layout.of(client.tables.get(name))
        with row_file(source.file, client.table(name).schema(), source.dialect) as found:
            rows = 0
            for batch in found.batches:
                rows += named_batch(layout, batch, fills=True).num_rows
    done = {"table": name, "read": rows, "rows": 0}
    show(done, as_json, lambda: typer.echo(f"{rows} rows can be loaded into {name}; none was"))


def infer(name: str, source: ImportFile, key: list[str], partitions: int) -> TableSpec:
    """Raises Refused."""
    with row_file(first_of(source.file), None, source.dialect) as found:
        return infer_spec(TableName.parse(name).table, found.schema, key, partitions)


def first_of(file: Path) -> Path:
    """The file, or the first one below the folder. Raises Refused."""
    if not file.is_dir():
        return file
    found = min(file.rglob("*.parquet"), default=None)
    if found is None:
        expected = "files whose names end in .parquet"
        raise Refused("invalid-request", pointer="/file", found=str(file), expected=expected)
    return found


def _import(client: Client, name: str, file: Path, as_json: bool) -> None:
    with procedure_bar("import") as tell:
        paths = [str(file.absolute())]
        found = client.tables.import_files(name, paths, wait_s=IMPORT_S, on_progress=tell)
    if as_json:
        show_json(found.model_dump(mode="json"))
    else:
        typer.echo(f"{found.rows} rows of {found.files} files imported into {name}")


def _create(
    client: Client, name: str, source: ImportFile, given: tuple[list[str], int], as_json: bool
) -> bool:
    """Whether it was made: one of that name that is there is loaded into as it is."""
    spec = infer(name, source, *given)
    try:
        client.tables.get(name)
    except NotFound:
        pass
    else:
        return False
    if not as_json:
        typer.echo(spec.model_dump_json(indent=2, exclude_defaults=True))
    within = str(TableName.parse(name).within)
    with procedure_bar("create") as tell:
        client.tables.create(spec, within, wait_s=WAIT_S, on_progress=tell)
    return True


@contextmanager
def _undone(client: Client, name: str) -> Iterator[None]:
    """Drops the table *name*, which was made for a load, if the load ends without success.

    Any exception counts, an interrupt included. The table can be undropped.
    """
    is_loaded = False
    try:
        yield
        is_loaded = True
    finally:
        if not is_loaded:
            client.tables.drop(name, wait_s=WAIT_S)
            said = f"{name} was made for this import and is dropped again"
            typer.echo(f"{said} (metasrv table undrop {name} brings it back)", err=True)


def _load(table: Table, source: ImportFile, batch_rows: int, op: LoadOp) -> LoadResult:
    words, done = f"import {source.file.name}", 0
    with row_file(source.file, table.schema(), source.dialect) as found, bar(words) as shown:

        def tell(rows: int) -> None:
            nonlocal done
            done = rows
            shown.tell(words, rows, found.rows)

        try:
            return table.load(found.batches, batch_rows, tell, op)
        except KeyboardInterrupt:
            typer.echo(f"interrupted: {done} rows or more were loaded before that", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
