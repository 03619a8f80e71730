"""Opening regions under a route that names them: order, then say in the route what came of it.

A region serves no client before the route says `open`: the Nodes adapter grants a lease only for
what the applied catalog calls open. So whoever led a region that was never announced has
acknowledged nothing in it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from keys.commit.change import change, route_changed
from keys.commit.txn import NOTHING, Txn
from keys.model.tables import RegionRoute, RegionState, TableInfoKey, TableRouteKey
from metasrv_base.errors import Unavailable
from procedures.context import Context
from procedures.steps.copies.copy_orders import tell_copies
from procedures.steps.region_orders import (
    NodeAnswers,
    OrderAnswers,
    answered_by_all_that_do,
    is_gone,
    open_order,
    order_all,
    unserved,
)


@dataclass(frozen=True, slots=True)
class Announcement:
    """The result of one round of opening regions."""

    txn: Txn
    """The states that changed; NOTHING if none did."""
    closed: tuple[str, ...]
    """Ids of the regions that are still not open, and may be."""
    lost: tuple[str, ...] = ()
    """Ids of the regions that are lost for good: their engine keeps rows in a process that has
    ended."""


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
    named = [r for r in route.region_routes if r.region_id in region_ids]
    gone = {r.region_id for r in named if is_gone(info, r)}
    closed = [r for r in named if not (_is_open(r) or r.region_id in gone)]
    answers = await order_all(context, info, closed, open_order, _some_opened)
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
    gone |= {region.region_id for region in changed if is_gone(info, region)}
    over = opened | gone
    rest = tuple(region.region_id for region in closed if region.region_id not in over)
    txn = change(snapshot, route_changed(route, tuple(changed))) if changed else NOTHING
    return Announcement(txn, rest, tuple(sorted(gone)))


async def grant(context: Context, table_id: int, region_ids: Collection[str]) -> Txn:
    """Orders their leaders to open the open regions again, which now grants a lease with it, and
    tells their copies. Of a region with another copy in its set nothing is waited for: it needs no
    lease. A leader that has started again since opens no more at this epoch, and one that has lost
    the files has nothing to open: their regions are left to a failover, which waits for the locks
    of this procedure.

    Returns the transaction to commit: the route says `lost` of the regions of a volatile engine
    whose process has ended since they were announced; NOTHING for all others."""
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.must(info_key), snapshot.must(key)
    named = [r for r in route.region_routes if r.region_id in region_ids]
    away = unserved(context, info, named)
    regions = [region for region in named if region.region_id not in away]
    promised = {region.region_id for region in regions if len(region.in_sync) > 1}
    leased = {region.leader for region in regions if region.region_id not in promised}
    decided = answered_by_all_that_do(context, leased)
    answers = await order_all(context, info, regions, open_order, decided)
    leased &= context.answering_nodes()
    failed = answers.failed()
    lost = {id for id in failed if info.is_volatile and failed[id] == "region-lost"}
    silent = {node: error for node, error in answers.silent.items() if node in leased}
    OrderAnswers(answers.without(lost | promised).results, silent).must_all_succeed()
    await tell_copies(context, info, [each for each in regions if each.region_id not in lost])
    if not lost:
        return NOTHING
    return change(snapshot.only(key), route_changed(route, as_lost(regions, lost)))


def as_lost(regions: Iterable[RegionRoute], lost: Collection[str]) -> tuple[RegionRoute, ...]:
    """Returns the regions that are in *lost*, as the route then says it."""
    update = {"state": RegionState.LOST}
    return tuple(r.model_copy(update=update) for r in regions if r.region_id in lost)


def _some_opened(answers: NodeAnswers) -> bool:
    """Whether any region has opened: it is announced, and the others are ordered again."""
    return any(result.error is None for some in answers.values() for result in some)


def _is_open(region: RegionRoute) -> bool:
    return region.state is RegionState.OPEN


def _state_after(code: str, region: RegionRoute) -> RegionState:
    return RegionState.LOST if code == "region-lost" else region.state
