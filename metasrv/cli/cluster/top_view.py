"""One look at a cluster as `metasrv top` shows it: pure, from answers to lines and tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from metasrv.cli.cluster.node import held_lines
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
    """Those that are not over, newest first."""


def page(look: Look) -> RenderableType:
    return Group(*(Text(line) for line in head(look)), "", _nodes(look), "", _procedures(look))


def head(look: Look) -> Iterator[str]:
    """Who leads, who is up, and what an operator has switched off."""
    found, leader = look.cluster, look.cluster.leader
    who = f"leader {leader.id} at {leader.url}, term {leader.term}" if leader else "nobody leads"
    yield f"{who}   catalog version {found.catalog_version}{' (stale)' if found.stale else ''}"
    yield f"metasrvs {', '.join(one.id for one in found.metasrvs)}"
    if look.maintenance is not None and look.maintenance.enabled:
        until = f" until {look.maintenance.expires_at}" if look.maintenance.expires_at else ""
        yield f"MAINTENANCE{until}: nothing is failed over by detection{_why(look.maintenance)}"
    if look.pause is not None and look.pause.paused:
        yield f"PAUSED: no procedure begins a step{_why(look.pause)}"
    yield from held_lines(look.nodes)


def _why(found: MaintenanceBody | PauseBody) -> str:
    return f" ({found.reason})" if found.reason else ""


def _nodes(look: Look) -> Table:
    table = _table("node", "state", "zone", "lease", "leads", "regions", "heard", "phi")
    for one in look.nodes:
        state = one.state if one.cordon is None else f"{one.state}, cordoned"
        table.add_row(
            one.id,
            Text(state, STYLES[one.state]),
            one.zone,
            f"{one.lease_left_ms / 1000:.1f} s",
            str(one.leads),
            regions_of(one),
            "never" if one.heard_ms_ago is None else f"{one.heard_ms_ago / 1000:.1f} s",
            f"{one.phi:.1f}",
        )
    return table


def regions_of(one: NodeBody) -> str:
    """As it last reported them, by state."""
    return ", ".join(f"{count} {state}" for state, count in sorted(one.reported.items())) or "-"


def _procedures(look: Look) -> RenderableType:
    table = _table("procedure", "kind", "about", "state", "step", "done", "waits for")
    for one in look.procedures[:PROCEDURES_MAX]:
        table.add_row(
            one.id,
            one.kind,
            one.resource.name,
            Text("stalled", "red") if one.stalled else one.state,
            one.step,
            _done(one),
            "; ".join(waits(wait) for wait in one.waiting_for) or "-",
        )
    more = len(look.procedures) - PROCEDURES_MAX
    return Group(table, Text(f"and {more} more")) if more > 0 else table


def waits(wait: WaitingBody) -> str:
    """`region_lease dn-1, 8 s`"""
    key = f" {wait.key}" if wait.key else ""
    ends = f", {wait.expires_in_s} s" if wait.expires_in_s is not None else ""
    return f"{wait.kind}{key} {wait.holder}{ends}"


def _done(one: ProcedureBody) -> str:
    if one.progress is None:
        return "-"
    return f"{one.progress.done}/{one.progress.total} {one.progress.unit}"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in ("node", "procedure"))
    return table
