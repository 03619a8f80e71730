"""`metasrv tablespace`: groups of tables whose regions of the same number stay together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.complete import catalog_names, tablespace_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import (
    WAIT_S,
    AsJson,
    AsOf,
    DryRun,
    IdempotencyKey,
    IfExists,
    IfNotExists,
    Url,
    WaitS,
    service,
)
from metasrv.cli.output import show, show_table
from metasrv.cli.placing.placing_commands import (
    COMMENT_OR_NONE,
    Comment,
    PlacingObject,
    add_drop,
    add_get,
    add_rename,
    show_altered,
)
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv_base.wire.api.placing.placements import TablespaceBody

app = typer.Typer(no_args_is_help=True)


def _full_name(body: TablespaceBody) -> str:
    return f"{body.catalog}.{body.name}"


TABLESPACE = PlacingObject(
    "tablespace",
    "that no table is in",
    "its tables keep it",
    "`orders` or `main.orders`.",
    "Its name from now on, without the catalog.",
    lambda client: client.tablespaces,
    tablespace_names,
    _full_name,
    lambda body: body.model_dump(mode="json"),
)
NameArg = Annotated[str, TABLESPACE.name]


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    comment: Comment = None,
    if_not_exists: IfNotExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Create a tablespace."""
    with service(metasrv, as_json) as client, procedure_bar("create") as tell:
        body = client.tablespaces.create(
            name,
            comment,
            if_not_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show(body, as_json, lambda: typer.echo(f"{_full_name(body)} created: id {body.id}"))


@app.command("alter")
def alter(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    comment: Annotated[str, COMMENT_OR_NONE],
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Set or remove the comment of a tablespace."""
    with service(metasrv, as_json) as client, procedure_bar("alter") as tell:
        body = client.tablespaces.alter(
            name,
            comment or None,
            if_exists=if_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    show_altered(TABLESPACE, name, body, as_json)


add_rename(app, TABLESPACE)
add_drop(app, TABLESPACE)
add_get(app, TABLESPACE)


@app.command("list")
def list_(
    catalog: Annotated[
        str,
        typer.Argument(
            metavar="CATALOG", help="Name of the catalog.", autocompletion=catalog_names
        ),
    ] = "main",
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """List the tablespaces of a catalog, by name."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        spaces = client.tablespaces.list(catalog, as_of)
    rows = [(space.id, space.name, space.comment or "", space.created_at) for space in spaces]
    names = [_full_name(space) for space in spaces]
    head = ("id", "tablespace", "comment", "created")
    show_form(form, spaces, names, lambda: show_table(head, rows))
