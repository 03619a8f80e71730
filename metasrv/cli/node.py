"""`metasrv node`: who is alive, and what they hold."""

from typing import Annotated

import typer

from base.wire.cluster import NodeBody
from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_facts, show_json, show_table

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_(metasrv: Url = None, as_json: AsJson = False) -> None:
    """All registered nodes."""
    with service(metasrv, as_json) as client:
        found = client.nodes.list()
    if as_json:
        show_json(found)
        return
    rows = [
        (one.id, one.state, one.address, one.zone, one.leads, _heard(one), f"{one.phi:.1f}")
        for one in found
    ]
    show_table(("node", "state", "address", "zone", "leads", "heard", "phi"), rows)


@app.command("get")
def get(
    node: Annotated[str, typer.Argument(metavar="NODE")],
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """One node, with the regions it has reported."""
    with service(metasrv, as_json) as client:
        found = client.nodes.get(node)
    if as_json:
        show_json(found)
        return
    facts = found.model_dump(mode="json", exclude={"regions", "resources", "heard_ms_ago"})
    show_facts({**facts, "heard": _heard(found)})
    if found.regions:
        typer.echo()
        rows = [(one.region_id, one.epoch, one.state, one.rows, one.bytes) for one in found.regions]
        show_table(("region", "epoch", "state", "rows", "bytes"), rows)


def _heard(one: NodeBody) -> str:
    return "never" if one.heard_ms_ago is None else f"{one.heard_ms_ago / 1000:.1f} s ago"
