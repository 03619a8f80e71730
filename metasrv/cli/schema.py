"""`metasrv schema`: the databases of a catalog."""

from typing import Annotated

import typer

from metasrv.cli.options import WAIT_S, AsJson, Cascade, DryRun, Url, WaitS, service
from metasrv.cli.output import show_facts, show_json, show_table
from metasrv.cli.progress import procedure_bar

app = typer.Typer(no_args_is_help=True)
SchemaArg = Annotated[str, typer.Argument(metavar="SCHEMA", help="`public` or `main.public`")]


@app.command("create")
def create(  # noqa: PLR0913  # a parameter is an option of the command
    name: SchemaArg,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists")] = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Make a schema."""
    with service(metasrv, as_json) as client, procedure_bar("create") as tell:
        body = client.schemas.create(
            name, if_not_exists, wait_s=wait, on_progress=tell, dry_run=dry_run
        )
    if as_json:
        show_json(body)
    else:
        typer.echo(f"{body.catalog}.{body.name} created: id {body.id}")


@app.command("get")
def get(name: SchemaArg, metasrv: Url = None, as_json: AsJson = False) -> None:
    """What a schema is."""
    with service(metasrv, as_json) as client:
        body = client.schemas.get(name)
    if as_json:
        show_json(body)
    else:
        show_facts(body.model_dump(mode="json"))


@app.command("list")
def list_(
    catalog: Annotated[str, typer.Argument()] = "main", metasrv: Url = None, as_json: AsJson = False
) -> None:
    """The schemas of a catalog, by name."""
    with service(metasrv, as_json) as client:
        found = client.schemas.list(catalog)
    if as_json:
        show_json(found)
        return
    rows = [(one.id, one.name, one.options, one.created_at) for one in found]
    show_table(("id", "schema", "options", "created"), rows)


@app.command("drop")
def drop(  # noqa: PLR0913  # a parameter is an option of the command
    name: SchemaArg,
    cascade: Cascade = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Drop a schema that holds no table; with --cascade, with its tables."""
    with service(metasrv, as_json) as client, procedure_bar("drop") as tell:
        client.schemas.drop(name, cascade, wait_s=wait, on_progress=tell, dry_run=dry_run)
    if as_json:
        show_json({"dropped": name})
    else:
        typer.echo(f"{name} dropped")
