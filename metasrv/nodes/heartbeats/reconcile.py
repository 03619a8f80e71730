"""Computes the answer to a heartbeat: a pure function of the applied catalog and the node's report.

Leases are granted for what the catalog calls open, at its epoch. What the node lacks it is told to
open, as a leader or as a copy, and so is one that knows older copies; what it should not have, to
close; what nobody has ever heard of, to drop.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions
from keys.model.tables import RegionState
from metasrv.nodes.heartbeats.instruction_window import InstructionWindow
from metasrv.nodes.heartbeats.region_report import RegionReport
from metasrv_base.concurrency.turns import slices
from metasrv_base.ids import RegionId, TableId, region_id, table_of
from metasrv_base.wire.node.nodes import Grant, RegionStat
from metasrv_base.wire.node.orders import CloseRegion, DropRegion, Order
from procedures.steps.copies.copy_orders import open_copy, targets_of
from procedures.steps.copies.dropped_regions import is_awake
from procedures.steps.region_orders import UNNUMBERED, open_order

OPENED_IN_TURN = 32
"""Regions that one turn orders to be opened. For each a table is decoded, and mostly a part of the
snapshot inflated: up to half a millisecond."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    grants: tuple[Grant, ...]
    instructions: tuple[Order, ...]
    """Orders without numbers, which the sender gives them."""
    is_settled: bool
    """Whether nothing is to be ordered here, now or later, before the catalog or the report
    changes."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The regions that a node reported in its heartbeat, and whether it may be told to drop one."""

    node: str
    regions: RegionReport
    may_drop: bool = True
    """False for a node that was removed and is back: what it holds is in quarantine."""


def reconcile(
    current: Callable[[], Catalog],
    reported: Reported,
    is_busy: Callable[[int], bool],
    window: InstructionWindow,
) -> Iterator[Reconciled]:
    """The answer in parts, so that others may have their turn behind each. A part is true of the
    catalog that is *current* when it is made, and of no later one.

    *is_busy*: whether a living procedure holds a table's locks: it may be making that table.
    *window*: chooses the regions that get an order now.

    Everything else may be said beside a procedure: what has been announced is to be open, whoever
    announced it, and an order that arrives late is refused by its number.
    """
    node, report = reported.node, reported.regions
    for table_ids in slices(current().nodes.get(node, ())):
        yield from _granted(current, reported, table_ids, window)
    for region_ids in slices(report):
        catalog = current()
        surplus = _surplus(catalog, node, region_ids)
        admitted = (report[region_id] for region_id in surplus if window.admits())
        orders = (_ended(catalog, stat, is_busy, reported) for stat in admitted)
        yield Reconciled((), tuple(order for order in orders if order is not None), not surplus)


def _held(catalog: Catalog, node: str, table_id: int) -> HeldRegions:
    """Regions of a living table of which the node has a copy."""
    held = catalog.nodes.get(node)
    return () if held is None else held.get(table_id, ())


def _granted(
    current: Callable[[], Catalog],
    reported: Reported,
    table_ids: Iterable[int],
    window: InstructionWindow,
) -> Iterator[Reconciled]:
    """The parts of some tables: one, or more where many regions need an order, since each of those
    decodes a table."""
    node, report = reported.node, reported.regions
    catalog, grants, instructions = current(), list[Grant](), list[Order]()
    is_settled = True
    for table_id in table_ids:
        if len(instructions) >= OPENED_IN_TURN:
            yield Reconciled(tuple(grants), tuple(instructions), is_settled)
            catalog, grants, instructions = current(), [], []
        for region in _held(catalog, node, table_id):
            if region.state is not RegionState.OPEN:  # not announced: a procedure's to open
                continue
            name = str(region_id(TableId(table_id), region.number))
            is_open = report.is_open(name, region.epoch)
            if is_open and region.is_leader:  # a copy has no lease (docs/protocols.md P4.5)
                grants.append(Grant(region_id=name, epoch=region.epoch))
            knows_copies = not region.copies_version or (
                is_open and report.copies_version(name) >= region.copies_version
            )
            if is_open and knows_copies:
                continue
            is_settled = False
            if window.admits():
                instructions.append(_open(catalog.tables[table_id], name, node))
    yield Reconciled(tuple(grants), tuple(instructions), is_settled)


def _open(table: CatalogTable, name: str, node: str) -> Order:
    """The order to open a region, or its copy, or to take note of its copies where it is open."""
    (route,) = (route for route in table.route.region_routes if route.region_id == name)
    if node == route.leader:
        return open_order(table.info, route)
    (target,) = (each for each in targets_of(table.info, (route,)) if each.node == node)
    return open_copy(target)


def _surplus(catalog: Catalog, node: str, region_ids: Sequence[str]) -> list[str]:
    """The region ids of which the node has no copy, at any epoch."""
    held = {
        str(region_id(TableId(table_id), region.number))
        for table_id in {_table(name) for name in region_ids}
        for region in _held(catalog, node, table_id)
    }
    return [name for name in region_ids if name not in held]


def _ended(
    catalog: Catalog, stat: RegionStat, is_busy: Callable[[int], bool], reported: Reported
) -> Order | None:
    """The order for a region that the node should not have. None: a procedure may be making it, or
    has it open for the move of a dropped table."""
    table_id = _table(stat.region_id)
    if table_id in catalog.tables:
        is_moved = _is_moved(catalog.tables[table_id], stat.region_id, reported.node)
        return None if is_moved else _close(stat)
    if not reported.may_drop:
        return _close(stat)
    return None if is_busy(table_id) else _drop(stat)


def _is_moved(table: CatalogTable, name: str, node: str) -> bool:
    """Whether a move has woken that region of a dropped table on that node: no lease is granted,
    and the move closes it."""
    return table.dropped_at_ms is not None and any(
        route.region_id == name and node in route.nodes and is_awake(route)
        for route in table.route.region_routes
    )


def _table(region_id: str) -> int:
    return table_of(RegionId(int(region_id)))


def _close(stat: RegionStat) -> Order:
    """The files stay: the table lives elsewhere, or may be taken back."""
    return CloseRegion(number=UNNUMBERED, region_id=stat.region_id, epoch=stat.epoch)


def _drop(stat: RegionStat) -> Order:
    """Drops the files of a create that was undone while the node was away. Only the node knows
    their root: after an undrop it is one of an earlier epoch."""
    if stat.root is None:
        return _close(stat)
    return DropRegion(number=UNNUMBERED, region_id=stat.region_id, epoch=stat.epoch, root=stat.root)
