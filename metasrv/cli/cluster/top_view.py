"""One look at a cluster as `metasrv top` shows it: pure, from answers to lines and tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from metasrv.cli.cluster.node import held_lines
from metasrv.cli.progress import wait_name
from metasrv_base.wire.api.cluster import ClusterBody, MaintenanceBody, NodeBody, PauseBody
from metasrv_base.wire.api.procedures import ProcedureBody, WaitingBody

PROCEDURES_MAX = 20  # shown; the others are counted
STYLES = {"alive": "green", "suspect": "yellow", "dead": "red", "offline": "red"}


@dataclass(frozen=True, slots=True)
class Look:
    """All of about one moment. Without a leader only the first is known."""

    cluster: ClusterBody
    maintenance: MaintenanceBody | None = None
    pause: PauseBody | None = None
    nodes: Sequence[NodeBody] = ()
    procedures: Sequence[ProcedureBody] = ()
    """The procedures that are not over, newest first."""


def page(look: Look) -> RenderableType:
    return Group(*(Text(line) for line in head(look)), "", _nodes(look), "", _procedures(look))


def head(look: Look) -> Iterator[str]:
    """The leader, the servers that are up, and the switches that an operator has set."""
    cluster, leader = look.cluster, look.cluster.leader
    who = f"leader {leader.id} at {leader.url}, term {leader.term}" if leader else "nobody leads"
    yield f"{who}   catalog version {cluster.catalog_version}{' (stale)' if cluster.stale else ''}"
    yield f"metasrvs {', '.join(server.id for server in cluster.metasrvs)}"
    if look.maintenance is not None and look.maintenance.enabled:
        until = f" until {look.maintenance.expires_at}" if look.maintenance.expires_at else ""
        yield f"MAINTENANCE{until}: nothing is failed over by detection{_why(look.maintenance)}"
    if look.pause is not None and look.pause.paused:
        yield f"PAUSED: no procedure begins a step{_why(look.pause)}"
    yield from held_lines(look.nodes)


def _why(body: MaintenanceBody | PauseBody) -> str:
    return f" ({body.reason})" if body.reason else ""


def _nodes(look: Look) -> Table:
    table = _table("node", "state", "zone", "lease", "leads", "regions", "heard", "phi")
    for node in look.nodes:
        state = node.state if node.cordon is None else f"{node.state}, cordoned"
        table.add_row(
            node.id,
            Text(state, STYLES[node.state]),
            node.zone,
            f"{node.lease_left_ms / 1000:.1f} s",
            str(node.leads),
            regions_of(node),
            "never" if node.heard_ms_ago is None else f"{node.heard_ms_ago / 1000:.1f} s",
            f"{node.phi:.1f}",
        )
    return table


def regions_of(node: NodeBody) -> str:
    """Regions of a node as it last reported them, by state."""
    return ", ".join(f"{count} {state}" for state, count in sorted(node.reported.items())) or "-"


def _procedures(look: Look) -> RenderableType:
    table = _table("procedure", "kind", "about", "state", "step", "done", "waits for")
    for procedure in look.procedures[:PROCEDURES_MAX]:
        table.add_row(
            procedure.id,
            procedure.kind,
            procedure.resource.name,
            Text("stalled", "red") if procedure.stalled else procedure.state,
            procedure.step,
            _done(procedure),
            "; ".join(waits(wait) for wait in procedure.waiting_for) or "-",
        )
    more = len(look.procedures) - PROCEDURES_MAX
    return Group(table, Text(f"and {more} more")) if more > 0 else table


def waits(wait: WaitingBody) -> str:
    """`region_lease of dn-1, 8 s`"""
    ends = f", {wait.expires_in_s} s" if wait.expires_in_s is not None else ""
    return f"{wait_name(wait)}{ends}"


def _done(procedure: ProcedureBody) -> str:
    if procedure.progress is None:
        return "-"
    return f"{procedure.progress.done}/{procedure.progress.total} {procedure.progress.unit}"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in ("node", "procedure"))
    return table
