"""Proofs that folders of a node are orphans, for steps of procedures (docs/decisions/0400).

The order of the reads makes them proofs: the node lists its folders, then the locks of procedures
are looked at, then routes are read from the store at one revision. The transaction of the step
compares every key that was read, so a route that changed meanwhile refuses it. A proof stays true:
epochs and versions of copies never fall, and no root has the name of an earlier one.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from keys.commit.txn import Snapshot
from keys.model.cluster import DATANODE, ClusterKey, NodeKey
from keys.model.removed import RemovedTableRouteKey
from keys.model.tables import RegionRoute, TableRoute, TableRouteKey
from metasrv_base.errors import Conflict, MetaError
from metasrv_base.wire.node.adoption import FoundRoot, Inventory
from procedures.context import Context
from procedures.steps.orphans.judging import (
    Evidence,
    Judgement,
    RegionFolder,
    WaitReason,
    judgements,
    unread_roots,
)


@dataclass(frozen=True, slots=True)
class FoldersNamed:
    """Folders that are to be judged."""

    node: str
    roots: Collection[str]
    region_ids: Collection[int]
    """The regions in their names."""
    quarantined_ms: Mapping[str, int] | None = None
    """The times of those that are judged in quarantine, by root; None: they are not there."""
    grace_ms: int = 0


@dataclass(frozen=True, slots=True)
class JudgedFolder:
    """A folder as its node has described it, and the judgement."""

    item: FoundRoot
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class JudgedFolders:
    """Judged folders that are there, with all that was read of the store."""

    folders: tuple[JudgedFolder, ...]
    read: Snapshot


async def judge_folders(context: Context, named: FoldersNamed) -> JudgedFolders:
    """Raises Conflict `wrong-cluster` if another node answers, and Unavailable."""
    pages = [await _page(context, named.node, region) for region in sorted(named.region_ids)]
    items = _items(pages, named)
    folders = {
        item.root: RegionFolder.of(item)
        if named.quarantined_ms is None
        else RegionFolder.of_quarantined(item)
        for item in items
    }
    tables = {table for folder in folders.values() if (table := folder.table_id) is not None}
    busy = {table for table in tables if context.ports.is_busy(table)}
    cluster, node = ClusterKey(), NodeKey(DATANODE, named.node)
    keys = [key for table in tables for key in (TableRouteKey(table), RemovedTableRouteKey(table))]
    read = await context.snapshot(cluster, node, *keys)
    record = read.get(node)
    if record is None or record.returned is not None or record.restored_from is not None:
        return JudgedFolders((), read)
    routes = {table: route for table in tables if (route := _route(read, table)) is not None}
    evidence = Evidence(
        version=0,  # routes are those of the store
        route=routes.get,
        is_busy=busy.__contains__,
        seen_at=0,
        borrowed=frozenset(root for page in pages for item in page.roots for root in item.borrows),
        unread=frozenset[str]().union(*map(unread_roots, pages)),
        is_restored=read.must(cluster).restored is not None,
        now_ms=context.ports.clock.wall_ms(),
        grace_ms=named.grace_ms if named.quarantined_ms is None else 0,
    )
    pairs = zip(items, judgements([folders[item.root] for item in items], evidence), strict=True)
    shown = [
        JudgedFolder(item, await _with_readers(context, named.node, judgement, routes))
        for item, judgement in pairs
    ]
    return JudgedFolders(tuple(shown), read)


def _items(pages: Iterable[Inventory], named: FoldersNamed) -> list[FoundRoot]:
    """Nothing of a node that knows of no quarantine."""
    items: list[FoundRoot] = []
    for page in pages:
        if named.quarantined_ms is None and page.quarantined is not None:
            items += page.roots
        elif named.quarantined_ms is not None:
            items += (
                held.folder
                for held in page.quarantined or ()
                if named.quarantined_ms.get(held.folder.root) == held.at_ms
            )
    return [item for item in items if item.root in named.roots]


async def _page(context: Context, node: str, region_id: int) -> Inventory:
    page = await context.ports.nodes.inventory(node, region_id)
    if page.node_id != node:
        raise Conflict("wrong-cluster", node_id=node, reason=f"it is node {page.node_id}")
    return page


def _route(read: Snapshot, table_id: int) -> TableRoute | None:
    removed = read.get(RemovedTableRouteKey(table_id))
    return read.get(TableRouteKey(table_id)) or (None if removed is None else removed.route)


async def _with_readers(
    context: Context, node: str, judgement: Judgement, routes: Mapping[int, TableRoute]
) -> Judgement:
    """Asks the other nodes that have the region whether they still read the folder. A region never
    begins to read a folder that its route does not name."""
    folder = judgement.folder
    route = None if folder.table_id is None else routes.get(folder.table_id)
    if judgement.orphan is None or route is None:
        return judgement
    for region in route.region_routes:
        if region.region_id == str(folder.region_id):
            wait = await _read_elsewhere(context, node, folder.root, region)
            return judgement if wait is None else replace(judgement, orphan=None, wait=wait)
    return judgement


async def _read_elsewhere(
    context: Context, node: str, root: str, region: RegionRoute
) -> WaitReason | None:
    places = [(region.leader, region.root), *((copy.node, copy.root) for copy in region.copies)]
    for other, own in places:
        if other == node:
            continue
        try:
            page = await _page(context, other, int(region.region_id))
        except MetaError:
            return WaitReason.READERS
        wait = _read_by(page.every_root, own, root)
        if wait is not None:
            return wait
    return None


def _read_by(items: Sequence[FoundRoot], own: str, root: str) -> WaitReason | None:
    """Whether the region in the folder *own* reads *root*, or does not say."""
    lived_in = [item for item in items if item.root == own]
    if not lived_in or any(item.error is not None for item in lived_in):
        return WaitReason.READERS
    return WaitReason.BORROWED if any(root in item.borrows for item in lived_in) else None
