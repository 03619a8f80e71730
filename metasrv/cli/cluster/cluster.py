"""`metasrv cluster`: who leads, and whether it is under maintenance."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from metasrv.cli.options import AsJson, Url, service
from metasrv.cli.output import show_facts, show_json

if TYPE_CHECKING:
    from metasrv.sdk.sync import Client
    from metasrv_base.wire.api.cluster import MaintenanceBody, PauseBody

app = typer.Typer(no_args_is_help=True)


class Switch(StrEnum):
    ON = "on"
    OFF = "off"
    SHOW = "show"


SwitchArg = Annotated[
    Switch, typer.Argument(help="The new state; `show` changes nothing.", metavar="on|off|show")
]


@app.command("get")
def get(metasrv: Url = None, as_json: AsJson = False) -> None:
    """Show the servers, the leader and the version of the catalog."""
    with service(metasrv, as_json) as client:
        cluster = client.cluster.get()
        switches = [] if as_json or cluster.leader is None else _switched_on(client)
    if as_json:
        show_json(cluster)
        return
    leader = cluster.leader
    show_facts(
        {
            "cluster": cluster.cluster_id,
            "leader": f"{leader.id} at {leader.url}, term {leader.term}" if leader else "nobody",
            "metasrvs": [f"{server.id} at {server.url}" for server in cluster.metasrvs],
            "catalog version": cluster.catalog_version,
            "switched on": "; ".join(switches) or None,
            "answered by": f"{cluster.server_id}{', which is stale' if cluster.stale else ''}",
        }
    )


@app.command("maintenance")
def maintenance(
    switch: SwitchArg = Switch.SHOW,
    reason: Annotated[
        str | None,
        typer.Option(help="A reason, shown with the status of the cluster.", metavar="TEXT"),
    ] = None,
    expires_in: Annotated[
        int | None,
        typer.Option(
            min=1, help="Seconds after which maintenance mode ends by itself.", metavar="SECONDS"
        ),
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Switch maintenance mode: no failover begins by itself, and `failover run` needs --force."""
    with service(metasrv, as_json) as client:
        if switch is Switch.SHOW:
            body = client.cluster.maintenance()
        else:
            body = client.cluster.set_maintenance(switch is Switch.ON, reason, expires_in)
    if as_json:
        show_json(body)
        return
    until = f" until {body.expires_at}" if body.enabled and body.expires_at else ""
    state = "on" if body.enabled else "off"
    typer.echo(f"maintenance is {state}{until}{_since(body)}")


@app.command("pause")
def pause(
    switch: SwitchArg = Switch.SHOW,
    reason: Annotated[
        str | None,
        typer.Option(help="A reason, shown with the status of the cluster.", metavar="TEXT"),
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Pause all procedures, also failovers: none begins another step."""
    with service(metasrv, as_json) as client:
        if switch is Switch.SHOW:
            body = client.cluster.pause()
        else:
            body = client.cluster.set_pause(switch is Switch.ON, reason)
    if as_json:
        show_json(body)
        return
    state = "paused" if body.paused else "not paused"
    typer.echo(f"procedures are {state}{_since(body)}")


def _switched_on(client: Client) -> list[str]:
    """Maintenance and the pause of procedures, while they are on."""
    maintenance, pause = client.cluster.maintenance(), client.cluster.pause()
    states = (("maintenance", maintenance.enabled, maintenance), ("pause", pause.paused, pause))
    return [f"{name}{_since(state)}" for name, is_on, state in states if is_on]


def _since(body: MaintenanceBody | PauseBody) -> str:
    since = f" since {body.changed_at} by {body.changed_by}" if body.changed_at else ""
    return f"{since}: {body.reason}" if body.reason else since
