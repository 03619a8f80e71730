"""`metasrv failover`: open a node's regions elsewhere, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.cluster.node import held_lines
from metasrv.cli.cluster.procedure_text import show_procedures
from metasrv.cli.complete import node_ids, region_ids
from metasrv.cli.options import WAIT_S, AsJson, DryRun, IdempotencyKey, Limit, Url, WaitS, service
from metasrv.cli.output import show_json
from metasrv.cli.progress import procedure_bar

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.procedures import ProcedureBody

app = typer.Typer(no_args_is_help=True)


@app.command("run")
def run(  # noqa: PLR0913  # a parameter is an option of the command
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="Id of a node.", autocompletion=node_ids)
    ] = None,
    region: Annotated[
        list[str] | None,
        typer.Option(
            help="Id of a region. May be repeated.", metavar="REGION", autocompletion=region_ids
        ),
    ] = None,
    reason: Annotated[
        str, typer.Option(help="A reason, stored with the procedure.", metavar="TEXT")
    ] = "asked for by hand",
    to: Annotated[
        list[str] | None,
        typer.Option(
            help="A node that may take the regions. May be repeated.",
            metavar="NODE",
            autocompletion=node_ids,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Fail over even if the node is alive; it is fenced first."),
    ] = False,
    wait: WaitS = WAIT_S,
    dry_run: DryRun = False,
    idempotency_key: IdempotencyKey = "",
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Fail over all regions of NODE, or those of --region, and wait for the end."""
    if (node is None) == (not region):
        raise typer.BadParameter("name either a NODE or regions with --region")
    from metasrv_base.wire.api.procedures import FailoverRequest

    request = FailoverRequest(
        node_id=node,
        region_ids=tuple(region) if region else None,
        reason=reason,
        targets=tuple(to or ()),
        force=force,
    )
    places = {f"/region_ids/{number}": f"--region {id}" for number, id in enumerate(region or ())}
    with service(metasrv, as_json, places) as client:
        started = client.failovers.start(request, dry_run=dry_run, idempotency_key=idempotency_key)
        procedures = [_watched(client, procedure, wait) for procedure in started]
    if as_json:
        show_json(procedures)
    else:
        show_procedures(procedures)


@app.command("list")
def list_(limit: Limit = 50, metasrv: Url = None, as_json: AsJson = False) -> None:
    """List failovers, newest first; then those that are held back."""
    with service(metasrv, as_json) as client:
        procedures = client.failovers.list(limit)
        nodes = () if as_json else client.nodes.list()
    if as_json:
        show_json(procedures)
        return
    show_procedures(procedures)
    for line in held_lines(nodes):
        typer.echo(line)


def _watched(client: Client, procedure: ProcedureBody, wait_s: float) -> ProcedureBody:
    with procedure_bar("failover") as tell:
        return client.procedures.wait(procedure.id, wait_s, tell)
