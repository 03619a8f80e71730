"""`metasrv failover`: open a node's regions elsewhere, now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.cluster.node import held_lines
from metasrv.cli.cluster.procedure_text import show_procedures
from metasrv.cli.complete import node_ids, region_ids
from metasrv.cli.options import (
    LOOK_S,
    WAIT_S,
    AsJson,
    DryRun,
    IdempotencyKey,
    Limit,
    Url,
    WaitS,
    exit_code_of,
    is_left,
    service,
    show_error,
)
from metasrv.cli.output import show, show_json
from metasrv.cli.progress import procedure_bar
from metasrv_base.clock import SystemClock
from metasrv_base.errors import MetaError

if TYPE_CHECKING:
    from metasrv.sdk.control.procedure import OnProgress
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
    from metasrv.sdk.control.tables import model_of
    from metasrv_base.wire.api.procedures import FailoverRequest

    fields = {
        "node_id": node,
        "region_ids": region or None,
        "reason": reason,
        "targets": to or (),
        "force": force,
    }
    places = {f"/region_ids/{number}": f"--region {id}" for number, id in enumerate(region or ())}
    with service(metasrv, as_json, places) as client, procedure_bar("failover") as tell:
        request = model_of(FailoverRequest, fields)
        started = client.failovers.start(
            request, dry_run=dry_run, idempotency_key=idempotency_key, wait_s=0
        )
        ends = _ends_of(client, started, wait, tell)
        urls = ", ".join(client.urls)
    show(ends.procedures, as_json, lambda: show_procedures(ends.procedures))
    for error in ends.errors:
        if not (as_json and is_left(error)):  # the document has its state
            show_error(error, as_json, urls)
    # The lowest says most: a failure before a wait that ran out.
    raise typer.Exit(min(filter(None, map(exit_code_of, ends.errors)), default=0))


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


@dataclass(frozen=True, slots=True)
class Ends:
    procedures: list[ProcedureBody]
    """All that were started, each as it was seen last."""
    errors: list[MetaError]
    """The errors of those that did not succeed within the wait."""


def _ends_of(
    client: Client, started: Sequence[ProcedureBody], wait_s: float, tell: OnProgress
) -> Ends:
    """Waits for the ends of all procedures, to one deadline. Stops at an error of the service
    itself: it would be that of the others too."""
    latest = {procedure.id: procedure for procedure in started}

    def keep(procedure: ProcedureBody) -> None:
        latest[procedure.id] = procedure
        tell(procedure)

    for procedure in started:
        tell(procedure)
    clock = SystemClock()
    until_ms = clock.mono_ms() + wait_s * 1000
    errors: list[MetaError] = []
    for id in tuple(latest):
        left_s = max(LOOK_S, (until_ms - clock.mono_ms()) / 1000) if wait_s else 0
        try:
            client.procedures.wait(id, left_s, keep)
        except MetaError as error:
            errors.append(error)
            if "procedure_id" not in error.facts:
                break
    return Ends(list(latest.values()), errors)
