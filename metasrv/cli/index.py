"""`metasrv index`: made, looked at and dropped while rows are written."""

from typing import Annotated

import typer

from base.wire.tables import IndexBody
from metasrv.cli.options import WAIT_S, AsJson, DryRun, TableArg, Url, WaitS, service
from metasrv.cli.output import show, show_table
from metasrv.cli.progress import procedure_bar

app = typer.Typer(no_args_is_help=True)

IndexArg = Annotated[str, typer.Argument(metavar="INDEX")]


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    column: Annotated[list[str], typer.Option(help="In the order of the index. Repeated.")],
    unique: Annotated[bool, typer.Option("--unique", help="No two rows have the same.")] = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make an index of a table that has had no rows yet. It is public when this returns."""
    with service(metasrv, as_json) as client, procedure_bar("create") as tell:
        body = client.indexes.create(
            table, index, column, unique, wait_s=wait, on_progress=tell, dry_run=dry_run
        )
    show(body, as_json, lambda: typer.echo(f"{index} of {table} created: id {body.id}"))


@app.command("list")
def list_(table: TableArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """The indexes of a table, also those on their way in or out."""
    with service(metasrv, as_json) as client:
        found = client.indexes.list(table)
    show(found, as_json, lambda: show_indexes(found))


@app.command("get")
def get(table: TableArg, index: IndexArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """One index."""
    with service(metasrv, as_json) as client:
        found = client.indexes.get(table, index)
    show(found, as_json, lambda: show_indexes([found]))


@app.command("drop")
def drop(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop an index, with its entries."""
    with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
        client.indexes.drop(table, index, wait_s=wait, on_progress=tell, dry_run=dry_run)
    show({"dropped": index}, as_json, lambda: typer.echo(f"{index} of {table} dropped"))


def show_indexes(found: list[IndexBody]) -> None:
    rows = [(one.id, one.name, list(one.columns), one.unique, one.state) for one in found]
    show_table(("id", "index", "columns", "unique", "state"), rows)
