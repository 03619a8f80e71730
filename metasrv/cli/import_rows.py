"""`metasrv import T FILE`: a file of rows into a table, which `--create` makes first."""

from pathlib import Path
from typing import Annotated

import typer

from base.wire.tables import TableSpec
from metasrv.cli.files import row_file
from metasrv.cli.options import WAIT_S, AsJson, Direct, TableArg, Url, service
from metasrv.cli.output import show_json
from metasrv.cli.progress import bar, procedure_bar
from metasrv.sdk.infer import infer_spec
from metasrv.sdk.loader import LoadOp, LoadResult
from metasrv.sdk.names import TableName
from metasrv.sdk.sync import Client, Table


def command(  # noqa: PLR0913  # a parameter is an option of the command
    name: TableArg,
    file: Annotated[Path, typer.Argument(help="x.parquet, x.csv or x.ndjson")],
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
    batch_rows: Annotated[int, typer.Option(min=1, max=1_000_000)] = 5000,
    direct: Direct = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Load a file into a table. May be done again from the start, unless --insert."""
    if create != bool(key):
        raise typer.BadParameter("--create needs --key, and --key goes with --create only")
    with service(metasrv, as_json) as client:
        if create:
            _create(client, name, infer(name, file, key or [], partitions), as_json)
        table = client.table(name, direct)
        result = _load(table, file, batch_rows, "insert" if insert else "upsert")
    if as_json:
        show_json({"table": name, "rows": result.rows, "batches": result.batches})
    else:
        typer.echo(f"{result.rows} rows loaded into {name} in {result.batches} batches")


def infer(name: str, file: Path, key: list[str], partitions: int) -> TableSpec:
    """Raises Refused."""
    with row_file(file) as found:
        spec = infer_spec(TableName.parse(name).table, found.schema, key, partitions)
    return spec.model_copy(update={"if_not_exists": True})


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
