"""Regions that living nodes do not serve, as they report them and routes do not say yet: the rows
of those in memory ended with a process, and those with copies need another leader. Pure."""

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from keys.catalog.catalog import Catalog
from keys.model.tables import RegionRoute, RegionState
from metasrv.nodes.status import GONE, NodeStatus
from metasrv_base.ids import RegionId, table_of
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.failover.lose_regions import LoseRegions

STARTED_AGAIN = "its leader has started again"
LOST = "its leader has lost its files"
REGIONS_MAX = 1_024
"""Regions of a node in one state whose tables are judged in one look, some 4 ms. A disk that is
gone may have tens of thousands, for ever: the next look goes on with others."""


def lost_regions(
    statuses: Iterable[NodeStatus], catalog: Catalog, skipped: Collection[int], look: int = 0
) -> tuple[LoseRegions, ...]:
    """One procedure for each node and table. *skipped*: ids of tables of which it was said a moment
    ago. *look*: its number, which rises by one. A node that is dead says nothing: its failover
    does."""
    return tuple(
        procedure
        for status in statuses
        if status.lost and status.state not in GONE
        for procedure in _of_node(status, catalog, skipped, look)
    )


def _of_node(
    status: NodeStatus, catalog: Catalog, skipped: Collection[int], look: int
) -> Iterable[LoseRegions]:
    node = status.node.node_id
    for table_id in _judged_tables(status.lost, look):
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


def failing_leaders(
    statuses: Collection[NodeStatus],
    catalog: Catalog,
    skipped: Collection[tuple[int, str]],
    look: int = 0,
) -> tuple[FailoverTable, ...]:
    """Returns procedures that have another copy lead the regions with copies which their living
    leaders do not serve: one for each node, table and reason. A leader has started again
    (docs/protocols.md P3.5), or has lost the files of a region that another living copy of the set
    has. *skipped*: ids of tables, with nodes, for which one was begun a moment ago. *look*: its
    number, which rises by one. A node that is dead says nothing: its failover does."""
    living = {each.node.node_id: each for each in statuses if each.state not in GONE}
    return tuple(
        procedure
        for status in living.values()
        for reported, reason in ((status.restarted, STARTED_AGAIN), (status.lost, LOST))
        if reported
        for procedure in _moving_of_node(
            status.node.node_id, _Reported(reported, reason, look), catalog, living, skipped
        )
    )


class _Reported(NamedTuple):
    """Regions of one state that a node reports, with their epochs."""

    epochs: Mapping[str, int]
    reason: str
    look: int


def _moving_of_node(
    node: str,
    reported: _Reported,
    catalog: Catalog,
    living: Mapping[str, NodeStatus],
    skipped: Collection[tuple[int, str]],
) -> Iterable[FailoverTable]:
    for table_id in _judged_tables(reported.epochs, reported.look):
        table = catalog.tables.get(table_id)
        if table is None or table.dropped_at_ms is not None or (table_id, node) in skipped:
            continue
        region_ids = tuple(
            region.region_id
            for region in table.route.region_routes
            if region.state is RegionState.OPEN
            and region.leader == node
            and reported.epochs.get(region.region_id) == region.epoch
            and (reported.reason == STARTED_AGAIN or _has_successor(region, living))
        )
        if region_ids:
            yield FailoverTable(
                table_id=table_id,
                name=table.info.full_name,
                source=node,
                region_ids=region_ids,
                reason=reported.reason,
            )


def _judged_tables(reported: Mapping[str, int], look: int) -> list[int]:
    """Ids of the tables that the look of that number judges: all those with reported regions, in as
    many looks as that takes. A table is judged whole."""
    parts = max(1, -(-len(reported) // REGIONS_MAX))
    start = look % parts * REGIONS_MAX
    regions = islice(reported, start, start + REGIONS_MAX)
    return sorted({table_of(RegionId(int(region))) for region in regions})


def _has_successor(region: RegionRoute, living: Mapping[str, NodeStatus]) -> bool:
    """Whether a copy of the set is on a living node that has not lost it, too; for a leader that is
    alone in its set, an eligible copy."""
    nodes = region.in_sync[1:] or tuple(copy.node for copy in region.eligible)
    return any(node in living and region.region_id not in living[node].lost for node in nodes)
