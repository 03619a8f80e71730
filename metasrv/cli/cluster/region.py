"""`metasrv region`: where each region is, and what its leader says of it."""

from typing import Annotated

import typer

from metasrv.cli.complete import node_ids, table_names
from metasrv.cli.options import AsJson, AsOf, Url, service
from metasrv.cli.output import show_facts, show_json, show_table

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_(
    node: Annotated[
        str | None, typer.Option(help="Only regions that it leads.", autocompletion=node_ids)
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Only regions of this table.", autocompletion=table_names)
    ] = None,
    as_of: AsOf = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """List the regions of all tables."""
    with service(metasrv, as_json) as client:
        table_id = None if table is None else client.tables.get(table, as_of).id
        regions = client.regions.list(node, table_id, as_of)
    if as_json:
        show_json(regions)
        return
    rows = [
        (
            region.region_id,
            region.table,
            region.number,
            region.leader,
            region.epoch,
            region.state,
            region.stat.rows if region.stat else None,
        )
        for region in regions
    ]
    show_table(("region", "table", "number", "leader", "epoch", "state", "rows"), rows)


@app.command("get")
def get(
    region: Annotated[str, typer.Argument(metavar="REGION", help="Id of the region, decimal.")],
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show one region."""
    with service(metasrv, as_json) as client:
        body = client.regions.get(region)
    if as_json:
        show_json(body)
        return
    facts = body.model_dump(mode="json", exclude={"stat"})
    stat = body.stat.model_dump(exclude={"region_id", "epoch", "state"}) if body.stat else {}
    show_facts({**facts, **stat})
