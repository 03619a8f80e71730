"""Cleanup after regions: waits for leases that may still be alive, and deletion of folders."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from keys.model.tables import RegionRoute, TableInfo, TableInfoKey, TableRouteKey
from procedures.context import Context
from procedures.steps.region_orders import (
    MakeOrder,
    answered_by_all_that_do,
    discard_order,
    order_all,
    unserved,
)


def leader_is_gone(context: Context, regions: Iterable[RegionRoute]) -> bool:
    """Whether any of *regions* is led by a node that is not alive."""
    alive = context.alive_nodes()
    return any(region.leader not in alive for region in regions)


async def outwait_leases(
    context: Context, nodes: Collection[str], region_ids: Sequence[str]
) -> None:
    """Waits until no lease of *nodes* on *region_ids* can be alive.

    The applied route must not name those nodes any more, so that nothing renews them (P4).
    """
    for node in nodes:
        while (left_ms := context.ports.leases.free_in_ms(node, region_ids)) > 0:
            with context.waiting_for("region_lease", node, left_ms):
                await context.ports.clock.sleep_ms(left_ms)


def leaving(region: RegionRoute, root: str) -> str:
    """Returns the entry of a record that says that *region* has left *root*."""
    return f"{region.region_id} {root}"


def roots_left(leavings: Iterable[str]) -> dict[str, list[str]]:
    """Region id -> the roots it has left, in that order."""
    roots: dict[str, list[str]] = {}
    for leaving in leavings:
        region_id, _, root = leaving.partition(" ")
        roots.setdefault(region_id, []).append(root)
    return roots


def rounds(
    regions: Iterable[RegionRoute], roots: Mapping[str, Sequence[str]]
) -> Iterator[list[RegionRoute]]:
    """Each region with each of its *roots* in turn, one of them in a round: a node answers the
    repeat of the last order of a region alone."""
    for position in range(max(map(len, roots.values()), default=0)):
        yield [
            region.model_copy(update={"root": roots[region.region_id][position]})
            for region in regions
            if position < len(roots.get(region.region_id, ()))
        ]


async def discard_roots(context: Context, table_id: int, leavings: Iterable[str]) -> list[str]:
    """Deletes what was left, by orders to those who lead now, and returns what stays: also the
    folders of regions whose leader does not serve them, since only who serves a region says that
    it reads no such folder. They are orphans (docs/decisions/0400)."""
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    info, regions = snapshot.must(info_key), snapshot.must(key).region_routes
    away = unserved(context, info, regions)
    stays = []
    for claims in rounds(regions, roots_left(leavings)):
        stays += [claim.root for claim in claims if claim.region_id in away]
        here = [claim for claim in claims if claim.region_id not in away]
        stays += await delete_roots(context, info, here, discard_order)
    return stays


async def delete_roots(
    context: Context, info: TableInfo, claims: Iterable[RegionRoute], make: MakeOrder
) -> list[str]:
    """Orders each leader to delete the root of its region, and returns the folders that stay: the
    leader is gone or answers no orders, or will not delete a folder that is not the region's
    alone."""
    able = context.answering_nodes()
    claims = list(claims)
    here = [region for region in claims if region.leader in able]
    decided = answered_by_all_that_do(context, {region.leader for region in here})
    answers = await order_all(context, info, here, make, decided)
    kept = answers.kept()
    answers.without(kept).must_all_succeed()
    return [claim.root for claim in claims if claim.leader not in able or claim.region_id in kept]
