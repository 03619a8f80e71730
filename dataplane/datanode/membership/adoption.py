"""Adoption of a node by a cluster that was restored from a backup of its own (P8).

The old cluster is refused durably before the answer leaves: its orders by their cluster id, its
leases because no region is served any more. Files stay as they are; `inventory` tells of them.
"""

import asyncio
from dataclasses import dataclass
from functools import partial

import structlog

from dataplane.datanode.folders.inventory import inventory
from dataplane.datanode.membership.heartbeat import HeartbeatLoop
from dataplane.datanode.membership.membership import Membership
from dataplane.datanode.orders.journal import NodeJournal
from dataplane.datanode.orders.journal_format import Adopted
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.region.disk.disk import Disk
from metasrv_base.errors import Conflict
from metasrv_base.wire.node.adoption import AdoptAnswer, AdoptRequest, Inventory

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NodeAdoption:
    """The parts of a node that an adoption concerns."""

    membership: Membership
    heart: HeartbeatLoop
    desk: OrderExecutor
    journal: NodeJournal
    regions: NodeRegionSet
    disk: Disk

    async def adopt(self, request: AdoptRequest) -> AdoptAnswer:
        """Repeatable. Raises Conflict `wrong-cluster` for another node, and for a node of neither
        cluster; Unavailable if it cannot be written down."""
        me = self.membership.identity
        if request.node_id != me.node_id:
            reason = f"this is node {me.node_id}, not {request.node_id}"
            raise Conflict("wrong-cluster", node_id=request.node_id, reason=reason)
        async with self.heart.silent(), self.desk.held():
            if not self._is_done(request):
                await self.regions.close_all()
                record = Adopted(
                    cluster_id=request.cluster_id, from_cluster_id=request.from_cluster_id
                )
                await self.journal.commit([record])
                self.membership.adopted(request.cluster_id)
                log.info("node_adopted", cluster_id=request.cluster_id)
        return AdoptAnswer(
            node_id=me.node_id,
            cluster_id=request.cluster_id,
            incarnation=me.incarnation,
            root=me.root,
            dropped=len(self.journal.state.tombstones),
        )

    def _is_done(self, request: AdoptRequest) -> bool:
        state = self.journal.state
        if (state.cluster_id, state.adopted_from) == (request.cluster_id, request.from_cluster_id):
            return True
        if state.cluster_id != request.from_cluster_id:
            raise Conflict(
                "wrong-cluster", expected=state.cluster_id, found=request.from_cluster_id
            )
        return False

    async def inventory(self, first: int, last: int, *, log_ends: bool = False) -> Inventory:
        me = self.membership.identity
        listed = partial(inventory, self.disk, me.root, first, last, log_ends=log_ends)
        page = await asyncio.to_thread(listed)
        end = last if page.following is None else page.following - 1
        tombstones = self.journal.state.tombstones
        dropped = sorted(region for region in tombstones if first <= region <= end)
        return Inventory(
            node_id=me.node_id,
            cluster_id=self.journal.state.cluster_id,
            first=str(first),
            last=str(last),
            roots=page.roots,
            dropped=[str(region) for region in dropped],
            quarantined=page.quarantined,
            next=None if page.following is None else str(page.following),
        )
