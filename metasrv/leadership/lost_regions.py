"""Regions that a node lost with its process, as nodes report them and routes do not say yet: the
rows of those in memory, and the lead of those with copies. Pure."""

from collections.abc import Collection, Iterable

from keys.catalog.catalog import Catalog
from keys.model.tables import RegionState
from metasrv.nodes.status import GONE, NodeStatus
from metasrv_base.ids import RegionId, table_of
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.failover.lose_regions import LoseRegions

STARTED_AGAIN = "its leader has started again"


def lost_regions(
    statuses: Iterable[NodeStatus], catalog: Catalog, skipped: Collection[int]
) -> tuple[LoseRegions, ...]:
    """One procedure for each node and table. *skipped*: ids of tables of which it was said a moment
    ago. A node that is dead says nothing: its failover does."""
    return tuple(
        procedure
        for status in statuses
        if status.lost and status.state not in GONE
        for procedure in _of_node(status, catalog, skipped)
    )


def _of_node(
    status: NodeStatus, catalog: Catalog, skipped: Collection[int]
) -> Iterable[LoseRegions]:
    node = status.node.node_id
    for table_id in sorted({table_of(RegionId(int(region))) for region in status.lost}):
        table = catalog.tables.get(table_id)
        if table is None or table_id in skipped or not table.info.is_volatile:
            continue
        epochs = {
            region.region_id: region.epoch
            for region in table.route.region_routes
            if region.state is RegionState.OPEN
            and region.leader == node
            and status.lost.get(region.region_id) == region.epoch
        }
        if epochs and table.dropped_at_ms is None:
            yield LoseRegions(
                table_id=table_id, name=table.info.full_name, node=node, epochs=epochs
            )


def restarted_leaders(
    statuses: Iterable[NodeStatus], catalog: Catalog, skipped: Collection[tuple[int, str]]
) -> tuple[FailoverTable, ...]:
    """Returns a procedure for each node and table, which has another copy lead the regions with
    copies whose leader has started again (docs/protocols.md P3.5). *skipped*: ids of tables,
    with nodes, for which it was begun a moment ago. A node that is dead says nothing: its failover
    does."""
    return tuple(
        procedure
        for status in statuses
        if status.restarted and status.state not in GONE
        for procedure in _moving_of_node(status, catalog, skipped)
    )


def _moving_of_node(
    status: NodeStatus, catalog: Catalog, skipped: Collection[tuple[int, str]]
) -> Iterable[FailoverTable]:
    node = status.node.node_id
    for table_id in sorted({table_of(RegionId(int(region))) for region in status.restarted}):
        table = catalog.tables.get(table_id)
        if table is None or table.dropped_at_ms is not None or (table_id, node) in skipped:
            continue
        region_ids = tuple(
            region.region_id
            for region in table.route.region_routes
            if region.state is RegionState.OPEN
            and region.leader == node
            and status.restarted.get(region.region_id) == region.epoch
        )
        if region_ids:
            yield FailoverTable(
                table_id=table_id,
                name=table.info.full_name,
                source=node,
                region_ids=region_ids,
                reason=STARTED_AGAIN,
            )
