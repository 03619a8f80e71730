"""Opening regions under a route that names them: order, then say in the route what came of it.

A region serves no client before the route says `open`: the Nodes adapter grants a lease only for
what the applied catalog calls open. So whoever led a region that was never announced has
acknowledged nothing in it.
"""

from collections.abc import Collection
from dataclasses import dataclass

from keys.commit.change import change, route_changed
from keys.commit.txn import NOTHING, Txn
from keys.model.tables import RegionRoute, RegionState, TableInfoKey, TableRouteKey
from metasrv_base.errors import Unavailable
from procedures.context import Context
from procedures.steps.region_orders import open_order, order_all


@dataclass(frozen=True, slots=True)
class Announcement:
    """The result of one round of opening regions."""

    txn: Txn
    """The states that changed; NOTHING if none did."""
    closed: tuple[str, ...]
    """Ids of the regions that are still not open."""


async def open_and_announce(
    context: Context, table_id: int, region_ids: Collection[str]
) -> Announcement:
    """Orders the leaders that the route names to open those regions that are not open yet.

    They are announced only if TableInfo, too, is as they were told: a floor that was written
    meanwhile would be missing there, and who raises it orders only what is announced (P6).
    Raises Unavailable when nothing new can be said: "region-lost" if storage cannot be read.
    """
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.must(info_key), snapshot.must(key)
    closed = [r for r in route.region_routes if r.region_id in region_ids and not _is_open(r)]
    answers = await order_all(context, info, closed, open_order)
    failed = answers.failed()
    changed: list[RegionRoute] = []
    for region in closed:
        if region.region_id not in answers.results:
            continue
        state = RegionState.OPEN
        if region.region_id in failed:
            state = _state_after(failed[region.region_id], region)
        if state is not region.state:
            announced = region.announced or state is RegionState.OPEN
            update = {"state": state, "announced": announced}
            changed.append(region.model_copy(update=update))
    if closed and not changed:
        answers.must_all_succeed()
        raise Unavailable(regions=sorted(r.region_id for r in closed))
    opened = {region.region_id for region in changed if _is_open(region)}
    rest = tuple(region.region_id for region in closed if region.region_id not in opened)
    if not changed:
        return Announcement(NOTHING, rest)
    return Announcement(change(snapshot, route_changed(route, tuple(changed))), rest)


async def grant(context: Context, table_id: int, region_ids: Collection[str]) -> None:
    """Orders their leaders to open the open regions again, which now grants a lease with it."""
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    regions = [r for r in snapshot.must(key).region_routes if r.region_id in region_ids]
    answers = await order_all(context, snapshot.must(info_key), regions, open_order)
    answers.must_all_succeed()


def _is_open(region: RegionRoute) -> bool:
    return region.state is RegionState.OPEN


def _state_after(code: str, region: RegionRoute) -> RegionState:
    return RegionState.LOST if code == "region-lost" else region.state
