"""lose_regions: sets regions to `lost` whose rows ended with a process.

A node that has started again reports them: it has no files of these regions. Leader, epoch and root
stay as they are, since no other node has the rows; a truncate gives empty regions.
"""

from keys.commit.change import change, route_changed
from keys.commit.txn import NOTHING
from keys.model.records import Lock, Resource
from keys.model.tables import RegionState, TableInfoKey, TableRouteKey
from procedures.context import Context
from procedures.locking.locks import exclusive, region_key, route_key, shared
from procedures.machine import AdmissionLane, Done, Kind, Outcome, ProcedureState, Step
from procedures.steps.open_and_publish import as_lost


class LoseRegions(ProcedureState):
    table_id: int
    name: str
    node: str
    """The node that reports them."""
    epochs: dict[str, int]
    """Region id -> the epoch at which the node has lost it."""


async def mark(state: LoseRegions, context: Context) -> Outcome[LoseRegions]:
    """Sets the regions to `lost` in one transaction. Leaves those that have another epoch by now,
    which were opened again, and those that are not open, which a procedure handles."""
    info_key, key = TableInfoKey(state.table_id), TableRouteKey(state.table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.get(info_key), snapshot.get(key)
    if info is None or route is None or not info.is_volatile:
        return Done(state, {"table_id": state.table_id, "lost": []})
    lost = [
        region.region_id
        for region in route.region_routes
        if region.state is RegionState.OPEN
        and region.leader == state.node
        and state.epochs.get(region.region_id) == region.epoch
    ]
    changed = as_lost(route.region_routes, lost)
    txn = change(snapshot.only(key), route_changed(route, changed)) if changed else NOTHING
    return Done(state, {"table_id": state.table_id, "node": state.node, "lost": lost}, txn)


def locks(state: LoseRegions) -> tuple[Lock, ...]:
    regions = (exclusive(region_key(region_id)) for region_id in sorted(state.epochs))
    return (shared(route_key(state.table_id)), *regions)


def resource(state: LoseRegions) -> Resource:
    return Resource.table(state.table_id, state.name)


LOSE_REGIONS = Kind(
    name="lose_regions",
    state=LoseRegions,
    steps={"mark": Step(mark)},
    no_return="mark",
    locks=locks,
    resource=resource,
    success=200,
    lane=AdmissionLane.REPAIR,
)
