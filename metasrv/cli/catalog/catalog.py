"""`metasrv catalog`: the tenants, each with schemas of its own."""

from metasrv.cli.catalog.compact import compact, pin, pins, unpin
from metasrv.cli.catalog.namespaces import Namespace, commands
from metasrv.cli.catalog.versions import catalog_versions
from metasrv.cli.forms import Form, Output, form_of, show_form
from metasrv.cli.options import AsJson, AsOf, Url, service
from metasrv.cli.output import show_table

app = commands(
    Namespace(
        "catalog", "schema", "Name of the catalog, e.g. `main`.", lambda client: client.catalogs
    )
)


@app.command("list")
def list_(
    as_of: AsOf = None, metasrv: Url = None, output: Output = None, as_json: AsJson = False
) -> None:
    """List the catalogs, by name."""
    form = form_of(output, as_json)
    with service(metasrv, form is Form.JSON) as client:
        catalogs = client.catalogs.list(as_of)
    rows = [(catalog.id, catalog.name, catalog.options, catalog.created_at) for catalog in catalogs]
    names = [catalog.name for catalog in catalogs]
    show_form(
        form, catalogs, names, lambda: show_table(("id", "catalog", "options", "created"), rows)
    )


app.command("versions")(catalog_versions)
app.command("compact")(compact)
app.command("pins")(pins)
app.command("pin")(pin)
app.command("unpin")(unpin)
