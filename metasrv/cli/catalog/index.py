"""`metasrv index`: made, looked at and dropped while rows are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import column_names, index_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    GraceS,
    IdempotencyKey,
    IfExists,
    IfNotExists,
    TableArg,
    Url,
    WaitS,
    service,
)
from metasrv.cli.output import show, show_missed, show_table
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv_base.wire.api.tables import IndexBody

app = typer.Typer(no_args_is_help=True)

INDEX_PLACES = {
    "/name": "INDEX",
    "/columns": "--column",
    "/unique": "--unique",
    "/not_valid": "--not-valid",
    "/if_not_exists": "--if-not-exists",
}
"""The options that describe an IndexSpec."""
IndexArg = Annotated[
    str, typer.Argument(metavar="INDEX", help="Name of the index.", autocompletion=index_names)
]


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    column: Annotated[
        list[str],
        typer.Option(
            help="A column, in the order of the index. May be repeated.",
            metavar="COLUMN",
            autocompletion=column_names,
        ),
    ],
    unique: Annotated[
        bool, typer.Option("--unique", help="No two rows may have the same values.")
    ] = False,
    not_valid: Annotated[
        bool,
        typer.Option(
            "--not-valid", help="If rows have the same values, keep the index write-only."
        ),
    ] = False,
    if_not_exists: IfNotExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create an index without blocking writes. Statements use it once the command has returned."""
    fields = {"name": index, "columns": column, "unique": unique}
    spec = {**fields, "not_valid": not_valid, "if_not_exists": if_not_exists}
    with service(metasrv, as_json, INDEX_PLACES) as client, procedure_bar("create") as tell:
        body = client.indexes.create(
            table,
            spec,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show(body, as_json, lambda: show_made(table, body))


@app.command("validate")
def validate(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make a write-only unique index public, if no two rows have the same values."""
    with service(metasrv, as_json) as client, procedure_bar("validate") as tell:
        body = client.indexes.validate(
            table,
            index,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show(body, as_json, lambda: show_made(table, body))


@app.command("list")
def list_(
    table: TableArg,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the indexes of a table, with those that are being created or dropped."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        indexes = client.indexes.list(table, as_of)
    show_form(form, indexes, [index.name for index in indexes], lambda: show_indexes(indexes))


@app.command("get")
def get(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show one index."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        body = client.indexes.get(table, index, as_of)
    show_form(form, body, [body.name], lambda: show_index(body))


@app.command("drop")
def drop(  # noqa: PLR0913  # a parameter is an option of the command
    table: TableArg,
    index: IndexArg,
    grace: GraceS = 0,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop an index, with its entries."""
    with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
        dropped = client.indexes.drop(
            table,
            index,
            grace,
            if_exists=if_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    if not dropped:
        show_missed(f"{index} of {table}", as_json)
        return
    show({"dropped": index}, as_json, lambda: typer.echo(f"{index} of {table} dropped"))


@app.command("undrop")
def undrop(
    table: TableArg,
    index: IndexArg,
    wait: WaitS = WAIT_S,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Restore an index within the grace time of its drop."""
    with service(metasrv, as_json) as client:
        procedure = client.indexes.undrop(table, index, wait_s=wait)
    show(
        procedure, as_json, lambda: typer.echo(f"the drop of {index} of {table}: {procedure.state}")
    )


def show_made(table: str, body: IndexBody) -> None:
    typer.echo(f"{body.name} of {table}: id {body.id}, {body.state}")
    if body.duplicates is not None:
        typer.echo(f"{body.duplicates.total} values stand in more rows than one:")
        rows = [
            (list(group.values), list(map(_key, group.rows))) for group in body.duplicates.first
        ]
        show_table(("values", "rows"), rows)


def show_index(index: IndexBody) -> None:
    """Prints an index, with its progress in each region while it is filled."""
    show_indexes([index])
    if index.coverage is not None:
        done = f"{index.coverage.rows} of about {index.coverage.rows_total} rows"
        typer.echo(f"\nfilled by {index.coverage.procedure_id}: {done}")
        show_table(
            ("region", "state"),
            [(region.region_id, region.state) for region in index.coverage.regions],
        )


def show_indexes(indexes: list[IndexBody]) -> None:
    rows = [
        (index.id, index.name, list(index.columns), index.unique, index.state) for index in indexes
    ]
    show_table(("id", "index", "columns", "unique", "state"), rows)


def _key(values: Sequence[object]) -> object:
    """The one value of a key, or all of them."""
    return values[0] if len(values) == 1 else list(values)
