"""The operations behind the API of a datanode. Plain objects; no HTTP."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from dataplane.datanode.answers import NodeRegions, RegionBody, VersionBody
from dataplane.datanode.copies.copy_sessions import CopySessions
from dataplane.datanode.copies.followed import CopyAppends
from dataplane.datanode.membership.adoption import NodeAdoption
from dataplane.datanode.membership.membership import VERSION, Membership
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.orders.orders import OrderExecutor
from dataplane.datanode.promises.promise_desk import PromiseDesk
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.rows import RowService
from dataplane.datanode.regions.slot import Slot, is_reported, standing_of, stat_of
from dataplane.datanode.regions.store import schema_of
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, NotFound, Unavailable
from metasrv_base.wire.node.copy_sessions import FetchBody
from metasrv_base.wire.node.orders import OrderRequest, OrderResponse


@dataclass(frozen=True, slots=True)
class DatanodeService:
    membership: Membership
    orders: OrderExecutor
    regions: NodeRegionSet
    rows: RowService
    copies: CopyAppends
    sessions: CopySessions
    leases: RegionLeases
    clock: Clock
    metrics: NodeMetrics
    execute_orders: Callable[[OrderRequest], Awaitable[OrderResponse]]
    adoption: NodeAdoption
    promises: PromiseDesk

    def check_ready(self) -> None:
        """Raises Unavailable unless the leader has answered a heartbeat within one lease."""
        if not self.membership.is_heard(self.clock.mono_ms()):
            raise Unavailable(what="the node", reason="no leader has answered within one lease")

    def version(self) -> VersionBody:
        me = self.membership
        return VersionBody(
            version=VERSION,
            node_id=me.identity.node_id,
            incarnation=me.identity.incarnation,
            cluster_id=me.cluster_id,
            term=self.orders.term,
        )

    def all_regions(self) -> NodeRegions:
        me = self.membership
        return NodeRegions(
            node_id=me.identity.node_id,
            incarnation=me.identity.incarnation,
            cluster_id=me.cluster_id,
            term=self.orders.term,
            regions=[self._body(slot) for slot in self.regions if is_reported(slot)],
        )

    def region(self, region_id: int) -> RegionBody:
        for slot in self.regions:
            if slot.region_id == region_id and is_reported(slot):
                return self._body(slot)
        raise NotFound(what="region", name=str(region_id))

    def _body(self, slot: Slot) -> RegionBody:
        until_ms = self.leases.deadline_ms(slot.region_id, slot.epoch)
        left_ms = 0 if until_ms is None else max(0, until_ms - self.clock.mono_ms())
        schema = slot.owner.region.schema if slot.owner is not None else schema_of(slot.order)
        return RegionBody(
            stat=stat_of(slot),
            role=standing_of(slot),
            takes_writes=self._takes_writes(slot),
            root=slot.order.root,
            schema_floor=schema.floor,
            schema_version=schema.version,
            lease_left_ms=left_ms,
            queued=slot.owner.queued if slot.owner is not None else 0,
            groups=slot.owner.groups if slot.owner is not None else 0,
            fetch=_fetch_body(slot),
        )

    def _takes_writes(self, slot: Slot) -> bool:
        """Whether a write that comes now is ordered, if there is room for it."""
        if slot.owner is None or slot.state != "open":
            return False
        try:
            self.regions.must_order(slot)
            slot.owner.must_take_writes()
        except MetaError:
            return False
        return not self.regions.hand_overs.is_held(slot.region_id)


def _fetch_body(slot: Slot) -> FetchBody | None:
    progress = None if slot.followed is None else slot.followed.progress
    if progress is None:
        return None
    return FetchBody(bytes=progress.bytes, bytes_total=progress.bytes_total)
