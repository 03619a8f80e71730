"""Regions of dropped tables as a step reads and changes them: their keys are below `__removed-`.

A move of such a region wakes it: its state is `opening` then, and its nodes have it open without a
lease, so that copies can be made (docs/decisions/0407). Each change compares the route, so an
undrop or a purge that comes between is never overwritten.
"""

from keys.commit.change import change, dropped_route_changed
from keys.commit.txn import Snapshot, Txn
from keys.model.removed import RemovedTableInfoKey, RemovedTableRouteKey
from keys.model.tables import RegionRoute, RegionState, TableInfo, TableRoute
from metasrv_base.values.frozen import frozen
from procedures.context import Context


@frozen
class DroppedRegion:
    """A region of a dropped table, as it was read."""

    info: TableInfo
    route: TableRoute
    region: RegionRoute
    read: Snapshot

    def changed(self, region: RegionRoute) -> Txn:
        """Puts *region* in its place, if the route is still as it was read."""
        key = RemovedTableRouteKey(self.info.table_id)
        return change(self.read.only(key), dropped_route_changed(self.route, (region,)))


async def dropped_region(
    context: Context, table_id: int, region_id: str, dropped_by: str | None = None
) -> DroppedRegion | None:
    """The region; None: the table is living, was purged, or was dropped again since by another
    procedure than *dropped_by*, or has no such region."""
    info_key, key = RemovedTableInfoKey(table_id), RemovedTableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    removed, removed_route = snapshot.get(info_key), snapshot.get(key)
    if removed is None or removed_route is None or dropped_by not in (None, removed.dropped_by):
        return None
    route = removed_route.route
    regions = (region for region in route.region_routes if region.region_id == region_id)
    region = next(regions, None)
    return None if region is None else DroppedRegion(removed.info, route, region, snapshot)


def is_awake(region: RegionRoute) -> bool:
    """Whether a move may have the region of a dropped table open at its nodes."""
    return region.state is RegionState.OPENING
