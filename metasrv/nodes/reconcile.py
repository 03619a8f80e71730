"""Computes the answer to a heartbeat: a pure function of the applied catalog and the node's report.

Leases are granted for what the catalog calls open, at its epoch. What the node lacks it is told to
open; what it should not have, to close; what nobody has ever heard of, to drop.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from keys.catalog.catalog import Catalog, CatalogTable
from keys.model.tables import RegionRoute, RegionState
from metasrv_base.concurrency.turns import slices
from metasrv_base.ids import RegionId, table_of
from metasrv_base.wire.node.nodes import Grant, RegionStat
from metasrv_base.wire.node.orders import CloseRegion, DropRegion, Order
from procedures.steps.region_orders import UNNUMBERED, open_order


@dataclass(frozen=True, slots=True)
class Reconciled:
    grants: tuple[Grant, ...]
    instructions: tuple[Order, ...]
    """Orders without numbers, which the sender gives them."""


def reconcile(
    current: Callable[[], Catalog],
    node: str,
    report: Mapping[str, RegionStat],
    is_busy: Callable[[int], bool],
    *,
    may_drop: bool = True,
) -> Iterator[Reconciled]:
    """The answer in parts, so that others may have their turn behind each. A part is true of the
    catalog that is *current* when it is made, and of no later one.

    *is_busy*: whether a living procedure holds a table's locks: it may be making that table.
    *may_drop*: False for a node that was removed and is back: what it holds is in quarantine.

    Everything else may be said beside a procedure: what has been announced is to be open, whoever
    announced it, and an order that arrives late is refused by its number.
    """
    for table_ids in slices(current().nodes.get(node, ())):
        catalog = current()
        led = [region for table_id in table_ids for region in _led(catalog, node, table_id)]
        yield _granted(led, report)
    for stats in slices(report.values()):
        yield Reconciled((), tuple(_surplus(current(), node, stats, is_busy, may_drop)))


def _led(catalog: Catalog, node: str, table_id: int) -> list[tuple[CatalogTable, RegionRoute]]:
    """Regions of a living table."""
    if table_id not in catalog.nodes.get(node, ()):
        return []
    table = catalog.tables[table_id]
    return [(table, region) for region in table.route.region_routes if region.leader == node]


def _granted(
    led: Sequence[tuple[CatalogTable, RegionRoute]], report: Mapping[str, RegionStat]
) -> Reconciled:
    grants: list[Grant] = []
    instructions: list[Order] = []
    for table, region in led:
        if region.state is not RegionState.OPEN:  # not announced: a procedure's to open
            continue
        if _serves(report.get(region.region_id), region):
            grants.append(Grant(region_id=region.region_id, epoch=region.epoch))
        else:
            instructions.append(open_order(table.info, region))
    return Reconciled(tuple(grants), tuple(instructions))


def _surplus(
    catalog: Catalog,
    node: str,
    stats: Sequence[RegionStat],
    is_busy: Callable[[int], bool],
    may_drop: bool,
) -> Iterator[Order]:
    """Orders for those that the node should not have."""
    table_ids = {table_of(RegionId(int(stat.region_id))) for stat in stats}
    led = {region.region_id for table in table_ids for _, region in _led(catalog, node, table)}
    for stat in stats:
        if stat.region_id in led:  # at this epoch, or not yet at it
            continue
        table_id = table_of(RegionId(int(stat.region_id)))
        if table_id in catalog.tables or not may_drop:
            yield _close(stat)
        elif not is_busy(table_id):
            yield _drop(stat)


def _serves(stat: RegionStat | None, region: RegionRoute) -> bool:
    return stat is not None and stat.epoch == region.epoch and stat.state == "open"


def _close(stat: RegionStat) -> Order:
    """The files stay: the table lives elsewhere, or may be taken back."""
    return CloseRegion(number=UNNUMBERED, region_id=stat.region_id, epoch=stat.epoch)


def _drop(stat: RegionStat) -> Order:
    """Drops the files of a create that was undone while the node was away. Only the node knows
    their root: after an undrop it is one of an earlier epoch."""
    if stat.root is None:
        return _close(stat)
    return DropRegion(number=UNNUMBERED, region_id=stat.region_id, epoch=stat.epoch, root=stat.root)
