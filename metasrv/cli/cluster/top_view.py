"""One look at a cluster as `metasrv top` shows it: pure, from answers to lines and tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from metasrv.cli.cluster.node import held_lines
from metasrv.cli.cluster.procedure_text import short_ids
from metasrv.cli.progress import wait_name
from metasrv_base.wire.api.cluster import ClusterBody, MaintenanceBody, NodeBody, PauseBody
from metasrv_base.wire.api.procedures import ProcedureBody, WaitingBody

PROCEDURES_MAX = 20  # shown; the others are counted
NARROW, MEDIUM = 70, 110
"""Screens with fewer columns than that are narrow, or of medium width."""
NODES = ("node", "state", "zone", "lease", "leads", "regions", "heard", "phi")
NODES_NARROW = ("node", "state", "leads", "heard")
PROCEDURES = ("procedure", "kind", "about", "state", "step", "done", "waits_for")
PROCEDURES_MEDIUM = ("procedure", "change", "state", "done", "waits_for")
PROCEDURES_NARROW = ("procedure", "about", "state")
LONG = frozenset({"about", "change", "regions", "waits_for"})
"""Columns whose text goes on in a second line; the others end with a mark where they are cut."""
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


def page(look: Look, width: int) -> RenderableType:
    """Renders the screen for *width* columns; a narrow one shows fewer columns of each table."""
    is_narrow = width < NARROW
    tables = _nodes(look, is_narrow), "", _procedures(look, width)
    return Group(*(Text(line) for line in head(look)), "", *tables)


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


def _nodes(look: Look, is_narrow: bool) -> Table:
    table = ScreenTable(NODES_NARROW if is_narrow else NODES)
    for node in look.nodes:
        state = node.state if node.cordon is None else f"{node.state}, cordoned"
        age = "never" if node.heard_ms_ago is None else f"{node.heard_ms_ago / 1000:.1f} s"
        table.add(
            node=node.id,
            state=Text(state, STYLES[node.state]),
            zone=node.zone,
            lease=f"{node.lease_left_ms / 1000:.1f} s",
            leads=str(node.leads),
            regions=regions_of(node),
            heard=age,
            phi=f"{node.phi:.1f}",
        )
    return table.table


def regions_of(node: NodeBody) -> str:
    """Regions of a node as it last reported them, by state."""
    return ", ".join(f"{count} {state}" for state, count in sorted(node.reported.items())) or "-"


def _procedures(look: Look, width: int) -> RenderableType:
    wide = PROCEDURES if width >= MEDIUM else PROCEDURES_MEDIUM
    table = ScreenTable(PROCEDURES_NARROW if width < NARROW else wide)
    shown = look.procedures[:PROCEDURES_MAX]
    ids = short_ids([procedure.id for procedure in shown])
    for id, procedure in zip(ids, shown, strict=True):
        table.add(
            procedure=id,
            kind=procedure.kind,
            about=procedure.resource.name,
            change=f"{procedure.kind} {procedure.resource.name}",
            state=Text("stalled", "red") if procedure.stalled else procedure.state,
            step=procedure.step,
            done=_done(procedure),
            waits_for="; ".join(waits(wait) for wait in procedure.waiting_for) or "-",
        )
    more = len(look.procedures) - PROCEDURES_MAX
    return Group(table.table, Text(f"and {more} more")) if more > 0 else table.table


def waits(wait: WaitingBody) -> str:
    """`region_lease of dn-1, 8 s`"""
    ends = f", {wait.expires_in_s} s" if wait.expires_in_s is not None else ""
    return f"{wait_name(wait)}{ends}"


def _done(procedure: ProcedureBody) -> str:
    if procedure.progress is None:
        return "-"
    return f"{procedure.progress.done}/{procedure.progress.total} {procedure.progress.unit}"


class ScreenTable:
    """A table for a screen, of some columns of wider rows."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self.table = Table(box=None, pad_edge=False, header_style="bold")
        for name in names:
            is_long = name in LONG
            self.table.add_column(
                name.replace("_", " "),
                overflow="fold" if is_long else "ellipsis",
                no_wrap=not is_long,
            )

    def add(self, **cells: RenderableType) -> None:
        self.table.add_row(*(cells[name] for name in self._names))
