"""Learners that join the set of their region, as the leader asks once they have all rows.

No procedure of its own: a life that is judged has one root procedure.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.change import change, dropped_route_changed, route_changed
from keys.commit.txn import snapshot
from keys.model.removed import RemovedTableRouteKey
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRouteKey
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.errors import MetaError
from procedures.kinds.failover.change_copies import ChangeCopies, with_role
from procedures.quorum import min_in_sync
from procedures.steps.copies.copy_routes import must_have_region
from procedures.steps.copies.dropped_regions import is_awake
from tests.fakes.datanodes.plane import Plane


def joins_due(plane: Plane, book: NodeLiveness) -> list[ChangeCopies]:
    """Brings up the learners of the regions of `plane.joining` that follow, and returns the
    requests of their leaders."""
    if not plane.joining:
        return []
    tables = book.follower.catalog.tables
    return [request for number in tables for request in _joins_of(tables[number], plane)]


async def join(requests: Sequence[ChangeCopies], book: NodeLiveness) -> None:
    """Commits them. One that fails is due again with the next heartbeats."""
    for request in requests:
        with suppress(MetaError):
            await _join(request, book)


async def _join(request: ChangeCopies, book: NodeLiveness) -> None:
    table = book.follower.catalog.tables[request.table_id]
    key, gone = TableRouteKey(request.table_id), RemovedTableRouteKey(request.table_id)
    read = await snapshot(book.kv, key, gone, deadline_ms=book.timing.store_deadline_ms)
    removed = read.get(gone)
    route = read.must(key) if removed is None else removed.route
    region = must_have_region(route, request.region_id)
    joined = with_role(region, request, min_in_sync(table.info))
    entry = route_changed if removed is None else dropped_route_changed
    await book.committer.commit(change(read, entry(route, (joined,))))


def _joins_of(table: CatalogTable, plane: Plane) -> Iterator[ChangeCopies]:
    for region in table.route.region_routes:
        if region.region_id not in plane.joining:
            continue
        for copy in region.copies:
            is_open = region.state is RegionState.OPEN
            if table.dropped_at_ms is not None:
                is_open = is_awake(region)
            if copy.role is not CopyRole.LEARNER or not is_open:
                continue
            if _is_brought_up(plane, region, copy):
                yield ChangeCopies(
                    table_id=table.info.table_id,
                    name=table.info.full_name,
                    region_id=region.region_id,
                    change="join",
                    node=copy.node,
                    root=copy.root,
                    epoch=region.epoch,
                    version=region.copies_version,
                )


def _is_brought_up(plane: Plane, region: RegionRoute, copy: RegionCopy) -> bool:
    """Whether a leader that serves sends to a copy that follows: then that has the leader's files,
    and the leader requires it, and so uses no heartbeat lease (docs/protocols.md P4.5, P5.10)."""
    leader, node = plane.nodes[region.leader], plane.nodes[copy.node]
    led, followed = leader.serving.get(region.region_id), node.following.get(region.region_id)
    if led is None or followed is None:
        return False
    if not (leader.is_reached and node.is_reached and followed.root == copy.root):
        return False
    if led.epoch != region.epoch or led.copies_version != region.copies_version:
        return False
    folders = plane.storage.folders
    folders[copy.root].files = dict(folders[region.root].files)
    led.has_set = True
    plane.leases.pop((region.leader, region.region_id), None)
    return True
