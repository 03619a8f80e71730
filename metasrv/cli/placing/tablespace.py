"""`metasrv tablespace`: groups of tables whose regions of the same number stay together."""

from typing import Annotated

import typer

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
from metasrv.cli.output import show, show_facts, show_missed, show_table
from metasrv.cli.progress import procedure_bar

app = typer.Typer(no_args_is_help=True)

NameArg = Annotated[str, typer.Argument(metavar="TABLESPACE", help="`orders` or `main.orders`.")]
Comment = Annotated[str | None, typer.Option(help="Text that is shown with it.", metavar="TEXT")]


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
    full_name = f"{body.catalog}.{body.name}"
    show(body, as_json, lambda: typer.echo(f"{full_name} created: id {body.id}"))


@app.command("alter")
def alter(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    comment: Annotated[
        str, typer.Option(help="Text that is shown with it; '' removes it.", metavar="TEXT")
    ],
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
    if body is None:
        show_missed(name, as_json)
        return
    show(body, as_json, lambda: show_facts(body.model_dump(mode="json")))


@app.command("rename")
def rename(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    new_name: Annotated[
        str, typer.Argument(metavar="NEW_NAME", help="Its name from now on, without the catalog.")
    ],
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Give a tablespace another name; its tables keep it."""
    with service(metasrv, as_json) as client, procedure_bar("rename") as tell:
        body = client.tablespaces.rename(
            name,
            new_name,
            if_exists=if_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    if body is None:
        show_missed(name, as_json)
        return
    show(body, as_json, lambda: typer.echo(f"{name} is {body.catalog}.{body.name} now"))


@app.command("drop")
def drop(  # noqa: PLR0913  # a parameter is an option of the command
    name: NameArg,
    if_exists: IfExists = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop a tablespace that no table is in."""
    with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
        dropped = client.tablespaces.drop(
            name,
            if_exists=if_exists,
            wait_s=wait,
            on_progress=tell,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
    if not dropped:
        show_missed(name, as_json)
        return
    show({"dropped": name}, as_json, lambda: typer.echo(f"{name} dropped"))


@app.command("get")
def get(
    name: NameArg,
    as_of: AsOf = None,
    metasrv: Url = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show one tablespace."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        body = client.tablespaces.get(name, as_of)
    full_name = f"{body.catalog}.{body.name}"
    show_form(form, body, [full_name], lambda: show_facts(body.model_dump(mode="json")))


@app.command("list")
def list_(
    catalog: Annotated[
        str, typer.Argument(metavar="CATALOG", help="Name of the catalog.")
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
    names = [f"{space.catalog}.{space.name}" for space in spaces]
    head = ("id", "tablespace", "comment", "created")
    show_form(form, spaces, names, lambda: show_table(head, rows))
