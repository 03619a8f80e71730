"""Learners that join the set of their region, as the leader asks once they have all rows.

No procedure of its own: a life that is judged has one root procedure.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, RegionState, TableRouteKey
from metasrv.nodes.node_liveness import NodeLiveness
from metasrv_base.errors import MetaError
from procedures.kinds.failover.change_copies import ChangeCopies, with_role
from procedures.quorum import min_in_sync
from procedures.steps.copies.copy_routes import must_have_region
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
    key = TableRouteKey(request.table_id)
    read = await snapshot(book.kv, key, deadline_ms=book.timing.store_deadline_ms)
    route = read.must(key)
    minimum = min_in_sync(book.follower.catalog.tables[request.table_id].info)
    region = must_have_region(route, request.region_id)
    joined = with_role(region, request, minimum)
    await book.committer.commit(change(read, route_changed(route, (joined,))))


def _joins_of(table: CatalogTable, plane: Plane) -> Iterator[ChangeCopies]:
    for region in table.route.region_routes:
        if region.region_id not in plane.joining:
            continue
        for copy in region.copies:
            if copy.role is CopyRole.LEARNER and _is_brought_up(plane, region, copy):
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
    if region.state is not RegionState.OPEN or led is None or followed is None:
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
