"""`metasrv import T FILE`: a file of rows into a table, which `--create` makes first.

Rows go as statements; with `--bulk`, Parquet files are read by the servers' Spark.
"""

from pathlib import Path
from typing import Annotated

import typer

from base.errors import Refused
from base.wire.tables import TableSpec
from metasrv.cli.files import row_file
from metasrv.cli.options import WAIT_S, AsJson, Direct, TableArg, Url, service
from metasrv.cli.output import show_json
from metasrv.cli.progress import bar, procedure_bar
from metasrv.sdk.infer import infer_spec
from metasrv.sdk.loader import LoadOp, LoadResult
from metasrv.sdk.names import TableName
from metasrv.sdk.sync import Client, Table

IMPORT_S = 86_400.0  # of files of any size


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: Annotated[
        Path, typer.Argument(help="x.parquet, x.csv or x.ndjson; a folder of x.parquet: --bulk")
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
    batch_rows: Annotated[int, typer.Option(min=1, max=1_000_000)] = 5000,
    direct: Direct = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Load a file into a table. May be done again from the start, unless --insert."""
    if create != bool(key):
        raise typer.BadParameter("--create needs --key, and --key goes with --create only")
    bulk = bulk or file.is_dir()
    if bulk and (insert or direct):
        raise typer.BadParameter("--bulk takes neither --insert nor --direct")
    with service(metasrv, as_json) as client:
        if create:
            _create(client, name, infer(name, file, key or [], partitions), as_json)
        if bulk:
            _import(client, name, file, as_json)
            return
        table = client.table(name, direct)
        result = _load(table, file, batch_rows, "insert" if insert else "upsert")
    if as_json:
        show_json({"table": name, "rows": result.rows, "batches": result.batches})
    else:
        typer.echo(f"{result.rows} rows loaded into {name} in {result.batches} batches")


def infer(name: str, file: Path, key: list[str], partitions: int) -> TableSpec:
    """Raises Refused."""
    with row_file(first_of(file)) as found:
        spec = infer_spec(TableName.parse(name).table, found.schema, key, partitions)
    return spec.model_copy(update={"if_not_exists": True})


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


def _create(client: Client, name: str, spec: TableSpec, as_json: bool) -> None:
    if not as_json:
        typer.echo(spec.model_dump_json(indent=2, exclude_defaults=True, exclude={"if_not_exists"}))
    within = str(TableName.parse(name).within)
    with procedure_bar("create") as tell:
        client.tables.create(spec, within, wait_s=WAIT_S, on_progress=tell)


def _load(table: Table, file: Path, batch_rows: int, op: LoadOp) -> LoadResult:
    with row_file(file, table.schema()) as found, bar(f"import {file.name}") as shown:

        def tell(rows: int) -> None:
            shown.tell(f"import {file.name}", rows, found.rows)

        return table.load(found.batches, batch_rows, tell, op)
