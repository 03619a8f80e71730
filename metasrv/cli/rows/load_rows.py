"""A file of rows on its way into a table: judged, loaded as statements, or by the servers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import typer

from metasrv.cli.file_faults import Dialect
from metasrv.cli.files import must_have_columns, row_file
from metasrv.cli.near import must_be_among
from metasrv.cli.options import WAIT_S
from metasrv.cli.output import counted, show, show_json, show_table
from metasrv.cli.progress import EXIT_INTERRUPTED, bar, procedure_bar
from metasrv.cli.rows.plain_file import plain_file
from metasrv.cli.rows.row_format import STDIN
from metasrv.cli.skipping import Skipped
from metasrv.sdk.control.infer import infer_spec
from metasrv.sdk.control.names import TableName
from metasrv.sdk.rows.loader import LoadOp, LoadResult
from metasrv.sdk.sync import Client
from metasrv.sdk.sync_table import Table
from metasrv_base.errors import NotFound, Refused
from metasrv_base.rows.layout import Layout
from metasrv_base.rows.named import named_batch
from metasrv_base.schema.types import arrow_type
from metasrv_base.wire.api.tables import TableSpec

IMPORT_S = 86_400.0  # of files of any size


@dataclass(frozen=True, slots=True)
class Creation:
    """The table that an import creates."""

    key: tuple[str, ...]
    """Columns of the primary key."""
    partitions: int
    types: Mapping[str, str]
    """Types of columns, by name; the others are inferred from the file."""


@dataclass(frozen=True, slots=True)
class Import:
    """Options of the command."""

    file: Path
    ending: str | None
    """The ending that names the format, unless the name of the file has it."""
    dialect: Dialect
    create: Creation | None
    """The table to create; None: it exists."""
    op: LoadOp
    is_bulk: bool
    is_dry_run: bool
    batch_rows: int
    skips: bool = False
    """Leaves out lines that cannot be read."""


@dataclass(frozen=True, slots=True)
class ImportFile:
    file: Path
    dialect: Dialect
    skipped: Skipped | None
    """Takes the lines that are left out; None: they are an error."""


def run(client: Client, name: str, request: Import, *, as_json: bool) -> None:
    """Raises Refused, BadParameter, NotFound."""
    with plain_file(request.file, request.ending) as path, _named_as_given(request.file, path):
        skipped = Skipped() if request.skips else None
        source = ImportFile(path, request.dialect, skipped)
        if request.is_dry_run:
            _judge(client, name, source, request.create, as_json)
            return
        creation = request.create
        is_made = creation is not None and _create(client, name, source, creation, as_json)
        with _undone(client, name) if is_made else nullcontext():
            if request.is_bulk:
                _import(client, name, request.file, as_json)
                return
            table = client.table(name)
            result = _load(table, source, request.batch_rows, request.op)
        kept = table.count() if is_made else None
    _say(name, result, kept, as_json, skipped)


@contextmanager
def _named_as_given(file: Path, path: Path) -> Iterator[None]:
    """Names *file* in errors, where rows are read from an unpacked copy at *path*."""
    try:
        yield
    except Refused as error:
        if error.facts.get("path") != str(path):
            raise
        name = "stdin" if str(file) == STDIN else str(file)
        raise type(error)(error.code, **{**error.facts, "path": name}) from error


def _say(
    name: str, result: LoadResult, kept: int | None, as_json: bool, skipped: Skipped | None
) -> None:
    """Prints the result of a load. *kept* is the count of rows in a table that was made for it."""
    _say_skipped(skipped)
    replaced = result.replaced if kept is None else result.read - kept
    if as_json:
        done = {"read": result.read, "rows": result.rows, "batches": result.batches}
        left_out = {} if skipped is None else {"skipped": skipped.count}
        show_json({"table": name, **done, "replaced": replaced, **left_out})
        return
    rows, batches = counted(result.rows, "row"), counted(result.batches, "batch", "batches")
    typer.echo(f"{rows} loaded into {name} in {batches}")
    if replaced:
        message = f"{result.read} rows were read; {replaced} of them were replaced"
        typer.echo(f"{message} by later ones with the same key")


def _say_skipped(skipped: Skipped | None) -> None:
    """On stderr, the first of them with their lines."""
    if skipped is None or not skipped.count:
        return
    were = "was" if skipped.count == 1 else "were"
    typer.echo(f"{counted(skipped.count, 'line')} {were} skipped:", err=True)
    for line, reason in skipped.first:
        typer.echo(f"  line {line}: {reason}", err=True)
    if skipped.count > len(skipped.first):
        typer.echo(f"  and {skipped.count - len(skipped.first)} more", err=True)


def _judge(
    client: Client, name: str, source: ImportFile, create: Creation | None, as_json: bool
) -> None:
    """Reads every row as a load would, and sends none. *create*: of the table to be made."""
    if create is not None:
        spec = infer(name, source, create)
        schema = pa.schema([(column.name, arrow_type(column.type)) for column in spec.columns])
        with row_file(source.file, schema, source.dialect, source.skipped) as file:
            rows = sum(batch.num_rows for batch in file.batches)
        if as_json:
            typer.echo(spec.model_dump_json(indent=2, exclude_defaults=True), err=True)
        else:
            _show_columns(spec, create)
    else:
        layout, schema = Layout.of(client.tables.get(name)), client.table(name).schema()
        with row_file(source.file, schema, source.dialect, source.skipped) as file:
            must_have_columns(source.file, file.schema.names, schema.names, source.dialect)
            rows = 0
            for batch in file.batches:
                rows += named_batch(layout, batch, fills=True).num_rows
    _say_skipped(source.skipped)
    done = {"table": name, "read": rows, "rows": 0}
    show(done, as_json, lambda: typer.echo(f"{rows} rows can be loaded into {name}; none was"))


def infer(name: str, source: ImportFile, create: Creation) -> TableSpec:
    """Raises Refused, and BadParameter for the type of a column that the file does not have."""
    with row_file(first_of(source.file), None, source.dialect) as file:
        for option, columns in (("--types", create.types), ("--key", create.key)):
            for column in columns:
                must_be_among(column, file.schema.names, option, "column")
        table = TableName.parse(name).table
        return infer_spec(table, file.schema, create.key, create.partitions, create.types)


def _show_columns(spec: TableSpec, create: Creation) -> None:
    """Prints the columns of the table to be created, and where their types come from."""
    rows = [
        (
            column.name,
            column.type,
            "no" if not column.nullable else "yes",
            "key" if column.name in create.key else None,
            "--types" if column.name in create.types else "the file",
        )
        for column in spec.columns
    ]
    show_table(("column", "type", "nulls", "key", "type from"), rows)


def first_of(file: Path) -> Path:
    """The file, or the first one below the folder. Raises Refused."""
    if not file.is_dir():
        return file
    first = min(file.rglob("*.parquet"), default=None)
    if first is None:
        expected = "files whose names end in .parquet"
        raise Refused("invalid-request", pointer="/file", found=str(file), expected=expected)
    return first


def _import(client: Client, name: str, file: Path, as_json: bool) -> None:
    with procedure_bar("import") as tell:
        paths = [str(file.absolute())]
        imported = client.tables.import_files(name, paths, wait_s=IMPORT_S, on_progress=tell)
    if as_json:
        show_json(imported.model_dump(mode="json"))
    else:
        typer.echo(f"{imported.rows} rows of {imported.files} files imported into {name}")


def _create(
    client: Client, name: str, source: ImportFile, creation: Creation, as_json: bool
) -> bool:
    """Whether it was made: one of that name that is there is loaded into as it is."""
    spec = infer(name, source, creation)
    try:
        client.tables.get(name)
    except NotFound:
        pass
    else:
        return False
    if not as_json:
        _show_columns(spec, creation)
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
            message = f"{name} was made for this import and is dropped again"
            typer.echo(f"{message} (metasrv table undrop {name} brings it back)", err=True)


def _load(table: Table, source: ImportFile, batch_rows: int, op: LoadOp) -> LoadResult:
    words, done = f"import {source.file.name}", 0
    schema = table.schema()
    with (
        row_file(source.file, schema, source.dialect, source.skipped) as file,
        bar(words) as shown,
    ):
        must_have_columns(source.file, file.schema.names, schema.names, source.dialect)

        def tell(rows: int) -> None:
            nonlocal done
            done = rows
            shown.tell(words, rows, file.rows)

        try:
            return table.load(file.batches, batch_rows, tell, op)
        except KeyboardInterrupt:
            rows = f"{done} rows or more were loaded" if done else "some rows may be loaded"
            typer.echo(f"interrupted: {rows} before that", err=True)
            raise typer.Exit(EXIT_INTERRUPTED) from None
