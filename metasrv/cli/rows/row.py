"""`metasrv row`: one row looked up, inserted, changed or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import column_values
from metasrv.cli.options import AsJson, MaxLag, TableArg, Url, service
from metasrv.cli.output import show, show_facts
from metasrv_base.errors import NotFound

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client

app = typer.Typer(no_args_is_help=True)
KeyArg = Annotated[
    list[str],
    typer.Argument(metavar="KEY...", help="A value for each column of the primary key, in order."),
]
ValuesArg = Annotated[
    list[str],
    typer.Argument(
        metavar="COLUMN=VALUE...",
        help="Values of columns, e.g. note=hello price=1.5 seen=null.",
        autocompletion=column_values,
    ),
]
VERBS = {"insert": "inserted", "upsert": "written", "update": "updated"}


@app.command("get")
def get(
    name: TableArg,
    key: KeyArg,
    max_lag: MaxLag = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show one row. Exit 1: there is none."""
    from metasrv.cli.rows.row_values import json_row, key_of

    with service(metasrv, as_json) as client:
        body = client.tables.get(name)
        stored_row = client.table(name).get(key_of(body, key), max_lag=max_lag)
        if stored_row is None:
            raise NotFound(what="row", name=f"{' '.join(key)} in {name}", table=name)
        row = json_row(body, stored_row)
    show(row, as_json, lambda: show_facts({name: _shown(row[name]) for name in row}))


@app.command("insert")
def insert(name: TableArg, values: ValuesArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Insert a row. Exit 1: a row with its key exists."""
    _write(name, values, "insert", metasrv, as_json)


@app.command("upsert")
def upsert(name: TableArg, values: ValuesArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Insert a row, or replace the one with its key."""
    _write(name, values, "upsert", metasrv, as_json)


@app.command("update")
def update(name: TableArg, values: ValuesArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Change columns of the row whose key the values name. Exit 1: there is none."""
    _write(name, values, "update", metasrv, as_json)


@app.command("delete")
def delete(name: TableArg, key: KeyArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """Delete a row; a key without a row is no error."""
    from metasrv.cli.rows.row_values import key_of

    with service(metasrv, as_json) as client:
        client.table(name).delete([key_of(client.tables.get(name), key)])
    done = {"table": name, "key": key, "deleted": True}
    show(done, as_json, lambda: typer.echo(f"row {' '.join(key)} of {name} deleted"))


def _write(name: str, values: list[str], op: str, url: str | None, as_json: bool) -> None:
    with service(url, as_json, {"/rows/0": "COLUMN=VALUE"}) as client:
        written = _written(client, name, values, op)
    done = {"table": name, "rows": written}
    show(done, as_json, lambda: typer.echo(f"{written} row {VERBS[op]} in {name}"))


def _written(client: Client, name: str, values: list[str], op: str) -> int:
    from metasrv.cli.rows.row_values import row_of

    table, rows = client.table(name), [row_of(client.tables.get(name), values)]
    match op:
        case "insert":
            return table.insert(rows).rows
        case "upsert":
            return table.upsert(rows).rows
    return table.update(rows).rows


def _shown(value: object) -> object:
    return "null" if value is None else value
