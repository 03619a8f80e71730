"""`metasrv region`: where each region is, and what its leader says of it."""

from typing import Annotated

import typer

from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_facts, show_json, show_table

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_(metasrv: Url = None, as_json: AsJson = False) -> None:
    """List the regions of all tables."""
    with service(metasrv, as_json) as client:
        regions = client.regions.list()
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
