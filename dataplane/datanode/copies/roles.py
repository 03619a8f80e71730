"""Opens regions with copies in the role that an order names: leader, or copy of one."""

import asyncio
from functools import partial

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.copies.led_region import LeaderClocks, LedRegion
from dataplane.datanode.copies.members import is_in_sync
from dataplane.datanode.copies.senders import AppendPort, CopySenders
from dataplane.datanode.ports import RegionStore, Spawn
from dataplane.region.copies.promises import NodePromises
from dataplane.region.engine.region import Region
from dataplane.region.engines.engine import ServedRegion
from dataplane.region.following.leading import NEEDS_EPOCH, LedOpening, led_from_now
from metasrv_base.address_book import AddressBook
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError, Unavailable
from metasrv_base.wire.node.copies import RegionCopies
from metasrv_base.wire.node.orders import CreateRegion, OpenRegion


class CopyRoles:
    """The roles of this node in regions with copies."""

    def __init__(
        self,
        store: RegionStore,
        peers: AppendPort,
        clock: Clock,
        spawn: Spawn,
        promises: NodePromises,
    ) -> None:
        self._store, self._clock, self._spawn, self._promises = store, clock, spawn, promises
        self._senders = CopySenders(peers, clock, spawn)
        self.addresses = AddressBook()
        """Addresses of all nodes, newer than those that orders named."""

    async def follow(self, order: CreateRegion | OpenRegion) -> FollowedRegion:
        """Opens a copy, which is sent records from now on. Raises as `RegionStore.follow`."""
        copy = await asyncio.to_thread(self._store.follow, order)
        return FollowedRegion(copy, order, self._clock.mono_ms, self.addresses)

    async def lead(self, order: CreateRegion | OpenRegion) -> LedRegion:
        """Opens a region to lead it. Raises as `RegionStore.lead`."""
        assert order.copies is not None
        opening = await asyncio.to_thread(self._store.lead, order)
        return self._led(opening, order.copies)

    async def widened(self, region: ServedRegion, copies: RegionCopies) -> LedRegion:
        """Leads a region that had no copies, from now on with *copies*: all that it has counts. No
        group is under way. Files that it has taken are not in its log, so the log is cut: a copy
        begins with files. Raises Unavailable where another copy is in the set already: this leader
        did not ask for it, so it has started again since."""
        assert isinstance(region, Region), "a region with copies has a log"
        if is_in_sync(copies):
            what = f"region {region.spec.region_id}"
            raise Unavailable("not-ready", what=what, reason=NEEDS_EPOCH)
        await asyncio.to_thread(partial(region.maintenance.flush, to_end=True))
        return self._led(led_from_now(region), copies)

    def close(self) -> None:
        """Sends nothing any more: no region is led."""
        self._senders.close()

    def _led(self, opening: LedOpening, copies: RegionCopies) -> LedRegion:
        region_id, epoch = opening.region.spec.region_id, opening.region.opening.epoch
        clocks = LeaderClocks(
            self._promises.awake.now_ms,
            lambda: self._promises.given.lets_grow(region_id, epoch, self._clock.mono_ms()),
        )
        led = LedRegion(opening, copies, clocks, self._senders.notify, self.addresses)
        self._spawn(led.run())
        return led


def needs_epoch(error: MetaError) -> bool:
    """Whether the error is that of a leader that has started again."""
    return error.facts.get("reason") == NEEDS_EPOCH
