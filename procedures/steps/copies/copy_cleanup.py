"""Folders that copies have left: deleted by orders to their own nodes, which alone reach them."""

from collections.abc import Iterable, Mapping

from keys.model.tables import TableInfoKey, TableRouteKey
from procedures.context import Context
from procedures.steps.copies.copy_orders import (
    CopyTarget,
    answered_by_all_that_do,
    close_copy,
    delete_copies,
    discard_copy,
    living,
    order_copies,
)


def roots_of_copies(copies_left: Iterable[str]) -> Mapping[tuple[str, str], list[str]]:
    """Region and node -> the roots that the copy there has left, in order, from texts
    `region_id node root`."""
    roots: dict[tuple[str, str], list[str]] = {}
    for text in copies_left:
        region_id, node, root = text.split(" ", 2)
        roots.setdefault((region_id, node), []).append(root)
    return roots


async def discard_copies(context: Context, table_id: int, copies_left: Iterable[str]) -> list[str]:
    """Deletes the folders, one of each copy in a round, since a node answers the repeat of the last
    order of a region alone. Returns those that stay."""
    roots = roots_of_copies(copies_left)
    if not roots:
        return []
    info_key, key = TableInfoKey(table_id), TableRouteKey(table_id)
    snapshot = await context.snapshot(info_key, key)
    info, route = snapshot.must(info_key), snapshot.must(key)
    regions = {region.region_id: region for region in route.region_routes}
    everywhere = [CopyTarget(info, regions[region], node, "") for region, node in roots]
    able = context.answering_nodes()
    await _close_learners(context, living(everywhere, able))
    stays = [root for (_, node), some in roots.items() if node not in able for root in some]
    for position in range(max(map(len, roots.values()))):
        targets = [
            CopyTarget(info, regions[region_id], node, some[position])
            for (region_id, node), some in roots.items()
            if position < len(some) and node in able
        ]
        stays += await delete_copies(context, targets, discard_copy)
    return stays


async def _close_learners(context: Context, targets: Iterable[CopyTarget]) -> None:
    """A learner may be one that has not done the order which began it anew, and that follows in its
    old folder still. The others are opened again by the answers to their heartbeats."""
    learners = [target for target in targets if target.node not in target.region.in_sync]
    decided = answered_by_all_that_do(context, learners)
    (await order_copies(context, learners, close_copy, decided)).must_all_succeed()
