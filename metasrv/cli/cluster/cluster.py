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


@app.command("get")
def get(metasrv: Url = None, as_json: AsJson = False) -> None:
    """Show the servers, the leader and the version of the catalog."""
    with service(metasrv, as_json) as client:
        found = client.cluster.get()
        switches = [] if as_json or found.leader is None else _switched_on(client)
    if as_json:
        show_json(found)
        return
    leader = found.leader
    show_facts(
        {
            "cluster": found.cluster_id,
            "leader": f"{leader.id} at {leader.url}, term {leader.term}" if leader else "nobody",
            "metasrvs": [f"{one.id} at {one.url}" for one in found.metasrvs],
            "catalog version": found.catalog_version,
            "switched on": "; ".join(switches) or None,
            "answered by": f"{found.server_id}{', which is stale' if found.stale else ''}",
        }
    )


@app.command("maintenance")
def maintenance(
    switch: Annotated[Switch, typer.Argument()] = Switch.SHOW,
    reason: Annotated[
        str | None, typer.Option(help="A reason, shown with the status of the cluster.")
    ] = None,
    expires_in: Annotated[
        int | None, typer.Option(min=1, help="Switch it off after this many seconds.")
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Switch maintenance: no automatic failover, and `failover run` needs --force."""
    with service(metasrv, as_json) as client:
        if switch is Switch.SHOW:
            found = client.cluster.maintenance()
        else:
            found = client.cluster.set_maintenance(switch is Switch.ON, reason, expires_in)
    if as_json:
        show_json(found)
        return
    until = f" until {found.expires_at}" if found.enabled and found.expires_at else ""
    state = "on" if found.enabled else "off"
    typer.echo(f"maintenance is {state}{until}{_since(found)}")


@app.command("pause")
def pause(
    switch: Annotated[Switch, typer.Argument()] = Switch.SHOW,
    reason: Annotated[
        str | None, typer.Option(help="A reason, shown with the status of the cluster.")
    ] = None,
    metasrv: Url = None,
    as_json: AsJson = False,
) -> None:
    """Pause all procedures: no change begins a step, and no failover either."""
    with service(metasrv, as_json) as client:
        if switch is Switch.SHOW:
            found = client.cluster.pause()
        else:
            found = client.cluster.set_pause(switch is Switch.ON, reason)
    if as_json:
        show_json(found)
        return
    state = "paused" if found.paused else "not paused"
    typer.echo(f"procedures are {state}{_since(found)}")


def _switched_on(client: Client) -> list[str]:
    """Maintenance and the pause of procedures, while they are on."""
    maintenance, pause = client.cluster.maintenance(), client.cluster.pause()
    states = (("maintenance", maintenance.enabled, maintenance), ("pause", pause.paused, pause))
    return [f"{name}{_since(state)}" for name, is_on, state in states if is_on]


def _since(found: MaintenanceBody | PauseBody) -> str:
    since = f" since {found.changed_at} by {found.changed_by}" if found.changed_at else ""
    return f"{since}: {found.reason}" if found.reason else since
