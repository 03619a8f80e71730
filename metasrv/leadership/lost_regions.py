"""Regions whose rows ended with a process, as nodes report them and routes do not say yet. Pure."""

from collections.abc import Collection, Iterable

from keys.catalog.catalog import Catalog
from keys.model.tables import RegionState
from metasrv.nodes.status import GONE, NodeStatus
from metasrv_base.ids import RegionId, table_of
from procedures.kinds.failover.lose_regions import LoseRegions


def lost_regions(
    statuses: Iterable[NodeStatus], catalog: Catalog, told: Collection[int]
) -> tuple[LoseRegions, ...]:
    """One procedure for each node and table. *told*: ids of tables of which it was said a moment
    ago. A node that is dead says nothing: its failover does."""
    return tuple(
        procedure
        for status in statuses
        if status.lost and status.state not in GONE
        for procedure in _of_node(status, catalog, told)
    )


def _of_node(status: NodeStatus, catalog: Catalog, told: Collection[int]) -> Iterable[LoseRegions]:
    node = status.node.node_id
    for table_id in sorted({table_of(RegionId(int(region))) for region in status.lost}):
        table = catalog.tables.get(table_id)
        if table is None or table_id in told or not table.info.is_volatile:
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
