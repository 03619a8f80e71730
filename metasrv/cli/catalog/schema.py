"""`metasrv schema`: the databases of a catalog."""

from typing import Annotated

import typer

from metasrv.cli.catalog.namespaces import Namespace, commands
from metasrv.cli.complete import catalog_names, schema_names
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, AsOf, Url, service
from metasrv.cli.output import show_table

NAMED = "`public` or `main.public`"

app = commands(
    Namespace(
        "schema",
        "table",
        " without a table",
        "no table",
        NAMED,
        lambda client: client.schemas,
        schema_names,
    )
)


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
    """List the schemas of a catalog, by name."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        schemas = client.schemas.list(catalog, as_of)
    rows = [(schema.id, schema.name, schema.options, schema.created_at) for schema in schemas]
    names = [f"{schema.catalog}.{schema.name}" for schema in schemas]
    show_form(
        form, schemas, names, lambda: show_table(("id", "schema", "options", "created"), rows)
    )
