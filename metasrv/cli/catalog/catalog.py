"""`metasrv catalog`: the tenants, each with schemas of its own."""

from metasrv.cli.catalog.namespaces import Namespace, commands
from metasrv.cli.options import AsJson, AsOf, Url, service
from metasrv.cli.output import show, show_table

app = commands(
    Namespace(
        "catalog", "schema", "Name of the catalog, e.g. `main`.", lambda client: client.catalogs
    )
)


@app.command("list")
def list_(as_of: AsOf = None, metasrv: Url = None, as_json: AsJson = False) -> None:
    """List the catalogs, by name."""
    with service(metasrv, as_json) as client:
        catalogs = client.catalogs.list(as_of)
    rows = [(catalog.id, catalog.name, catalog.options, catalog.created_at) for catalog in catalogs]
    show(catalogs, as_json, lambda: show_table(("id", "catalog", "options", "created"), rows))
