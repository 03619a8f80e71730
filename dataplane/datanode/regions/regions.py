"""The regions of this node: which are open at which epoch, and what orders do to them."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import assert_never

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.copies.members import has_others, must_fit
from dataplane.datanode.copies.roles import CopyRoles, needs_epoch
from dataplane.datanode.copies.senders import AppendPort
from dataplane.datanode.copies.taking_files import adopt, ingest
from dataplane.datanode.ports import RegionStore, Spawn
from dataplane.datanode.regions.hand_over import HandOvers
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.refusals import Refusals
from dataplane.datanode.regions.region_owner import CLOSED, RegionOwner
from dataplane.datanode.regions.serving_rights import ServingRights
from dataplane.datanode.regions.slot import (
    ServeOrder,
    Slot,
    copy_of,
    is_here,
    is_reported,
    must_be_unused,
    must_have_room,
    stat_of,
)
from dataplane.datanode.regions.store import change_of, publish, schema_of
from dataplane.region.copies.promises import CopyHere, NodePromises
from dataplane.region.disk.lost import is_lost
from dataplane.region.engine.region_changes import RegionChange
from dataplane.region.engines.engine import ServedRegion
from metasrv_base.address_book import AddressBook
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, MetaError, NotFound, Refused, Unavailable
from metasrv_base.wire.node.nodes import RegionStat
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DeleteQuarantined,
    DiscardRoot,
    DropRegion,
    HandOver,
    IngestFiles,
    OpenRegion,
    Order,
    QuarantineRoot,
    SetSchema,
)

LOST_RETRY_MS = 15_000
"""The interval at which instructions of heartbeats look for lost storage again. An order of a
procedure looks at once; each look leaves a fence."""


class NodeRegionSet:
    """Orders come one at a time per region (the order desk sees to it)."""

    def __init__(
        self,
        store: RegionStore,
        leases: RegionLeases,
        clock: Clock,
        spawn: Spawn,
        peers: AppendPort | None = None,
    ) -> None:
        """Opens nothing yet. *peers*: other nodes with copies; None: this one has no part in
        regions with copies."""
        self._store = store
        promises = self.promises = NodePromises(clock.mono_ms)
        self._roles = None if peers is None else CopyRoles(store, peers, clock, spawn, promises)
        self.addresses = AddressBook() if self._roles is None else self._roles.addresses
        """Addresses of all nodes, by the last heartbeat that told them."""
        self._leases = leases
        self._clock = clock
        self._spawn = spawn
        self._slots: dict[int, Slot] = {}
        self._rights = ServingRights(leases, self.promises, clock)
        self.hand_overs = HandOvers(self._slots.get, self._rights, clock, spawn)
        self.refusals = Refusals()

    # -- asked by reads and writes

    def __iter__(self) -> Iterator[Slot]:
        return iter(list(self._slots.values()))

    def serving(self, region_id: int) -> Slot:
        """The open region. NotFound: not here. Unavailable: opening, or `region-lost`. Conflict:
        a higher fence ended it here."""
        slot = self._slots.get(region_id)
        if slot is None or slot.followed is not None:
            raise NotFound(what="region", name=str(region_id))
        if slot.state == "lost":
            raise Unavailable("region-lost", region_id=region_id)
        if slot.owner is None:
            raise Unavailable(what=f"region {region_id}", reason="it is being opened")
        slot.owner.must_serve()
        return slot

    def has_lease(self, region_id: int, epoch: int) -> bool:
        return self._rights.has_lease(region_id, epoch)

    def followed(self, region_id: int) -> FollowedRegion:
        """The copy of this node. NotFound: it has none."""
        slot = self._slots.get(region_id)
        if slot is None or slot.followed is None:
            raise NotFound(what="copy of region", name=str(region_id))
        return slot.followed

    def copies(self) -> Iterator[FollowedRegion]:
        return (slot.followed for slot in self if slot.followed is not None)

    def led(self) -> Iterator[LedRegion]:
        """Regions with copies that this node leads."""
        return (slot.led for slot in self if slot.led is not None)

    @property
    def has_copies(self) -> bool:
        """Whether this node has a part in a region with copies."""
        return any(slot.led is not None or slot.followed is not None for slot in self)

    def hear_addresses(self, urls: Mapping[str, str]) -> None:
        """Takes the addresses of all nodes. Records that are due go to the new ones."""
        self.addresses.replace(urls)
        for led in self.led():
            led.tell_senders()

    def copy_here(self, region_id: int) -> CopyHere | None:
        return copy_of(self._slots.get(region_id))

    def must_have_lease(self, slot: Slot) -> None:
        """Raises Unavailable unless the region may be read now."""
        self._rights.must_read(slot)

    def must_order(self, slot: Slot) -> None:
        """Raises Unavailable unless the region may take a write now."""
        self._rights.must_order(slot)

    def _may_write(self, region_id: int, epoch: int) -> bool:
        slot = self._slots.get(region_id)
        return slot is not None and slot.epoch == epoch and self._rights.may_write(slot)

    def is_worth_trying(self, order: Order) -> bool:
        """Whether to carry out *order*; False for an instruction to open a region that was found
        lost less than LOST_RETRY_MS ago, or that needs a new epoch."""
        slot = self._slots.get(int(order.region_id))
        if slot is None or not isinstance(order, OpenRegion):
            return True
        if slot.state == "restarted" and slot.epoch == order.epoch:
            return False
        if slot.state != "lost":
            return True
        return self._clock.mono_ms() - slot.lost_ms >= LOST_RETRY_MS

    # -- told by orders

    def renew_by(self, order: Order) -> None:
        slot = self._slots.get(int(order.region_id))
        if slot is not None and isinstance(order, ServeOrder) and slot.epoch == order.epoch:
            self._leases.granted_by_order(slot.region_id, slot.epoch, order.lease)

    def make_way(self, order: Order) -> None:
        if (slot := self._slots.get(int(order.region_id))) is not None:
            slot.make_way(order)

    async def carry_out(self, order: Order) -> int | None:
        """The row version at which a floor took hold, of an order that raises one."""
        match order:
            case CreateRegion() | OpenRegion():
                must_fit(order)
                await self._serve(order)
            case SetSchema():
                return await self._change_schema(order)
            case CloseRegion():
                await self._close(order)
            case DropRegion():
                await self._close(order)
                await asyncio.to_thread(self._store.drop, order)
            case AdoptFiles():
                owner = self._owner_at(order)
                await owner.change(lambda: adopt(owner.region, order))
            case IngestFiles():
                await self._ingest(order)
            case DiscardRoot(left=True) | QuarantineRoot() | DeleteQuarantined():
                await self._remove_folder(order)
            case DiscardRoot():
                owner = self._owner_at(order)
                await owner.change(lambda: self._store.discard(order, owner.region))
            case HandOver():
                await self.hand_overs.carry_out(order)
            case _:
                assert_never(order)
        return None

    async def close_all(self) -> None:
        """Closes every region and its log, before the process ends. Deletes nothing."""
        for slot in self:
            await self._stop(slot)
        if self._roles is not None:
            self._roles.close()

    # -- the life of a slot

    async def _serve(self, order: ServeOrder) -> None:
        slot = self._slots.get(int(order.region_id))
        if slot is not None:
            if slot.epoch > order.epoch:
                raise _behind(slot, order)
            if await self._goes_on(slot, order):
                return
            await self._stop(slot)
        must_have_room(len(self._slots))
        slot = self._slots[int(order.region_id)] = Slot(order)
        await self._bring_up(slot)

    async def _goes_on(self, slot: Slot, order: ServeOrder) -> bool:
        """Whether the region is here as the order asks, and has taken what it brings."""
        if slot.followed is not None and is_here(slot.order, order, any_epoch=True):
            slot.order = order
            slot.followed.hear(order)
            slot.note_copies(order)
            return True
        owner = slot.owner
        if owner is None or owner.stopped_by is not None or not is_here(slot.order, order):
            return False
        if slot.led is not None and order.copies is not None:
            slot.led.hear(order.copies)
        change = RegionChange(schema_of(order))
        if slot.led is None:
            await self._change(slot, owner, change)
        elif slot.led.is_change_due(change.schema):
            await owner.change_on_loop(partial(slot.led.declare, change.schema))
        if slot.led is None and has_others(order.copies):
            await self._widen(slot, owner, order)
        slot.note_copies(order)
        return True

    async def _widen(self, slot: Slot, owner: RegionOwner, order: ServeOrder) -> None:
        """Copies come to a region that had none, while no group is under way."""
        roles, copies = self._copy_roles(order), order.copies
        assert copies is not None

        async def widen() -> None:
            self._take_lead(slot, owner, await roles.widened(owner.region, copies))

        await owner.change_on_loop(widen)

    async def _change_schema(self, order: SetSchema) -> int:
        owner, change = self._owner_at(order), change_of(order)
        if change.closes:
            owner.is_tidy = False  # output of jobs that was not adopted is obsolete now
        return await self._change(self._slots[int(order.region_id)], owner, change)

    async def _change(self, slot: Slot, owner: RegionOwner, change: RegionChange) -> int:
        if slot.led is None:
            return await owner.change(partial(publish, owner.region, change))
        self.must_order(slot)
        return await owner.change_on_loop(partial(slot.led.change, change))

    async def _ingest(self, order: IngestFiles) -> None:
        owner, slot = self._owner_at(order), self._slots[int(order.region_id)]
        slot.must_have_minimum()
        if slot.led is not None:
            self.must_order(slot)
        await ingest(owner, slot.led, order)

    async def _bring_up(self, slot: Slot) -> None:
        order, led = slot.order, None
        try:
            if order.role == "copy":
                slot.followed = await self._copy_roles(order).follow(order)
            elif has_others(order.copies):
                led = await self._copy_roles(order).lead(order)
            else:
                region = await asyncio.to_thread(self._region, order)
        except MetaError as error:
            if needs_epoch(error):
                slot.state = "restarted"
                raise
            if is_lost(error):
                slot.state, slot.lost_ms = "lost", self._clock.mono_ms()
                raise Unavailable(
                    "region-lost", region_id=slot.order.region_id, **_cause(error)
                ) from error
            del self._slots[slot.region_id]
            raise
        slot.state = "open"
        slot.note_copies(order)
        if slot.followed is not None:
            return
        if led is not None:
            region = led.region
        region_id, epoch = slot.region_id, slot.epoch  # the slot itself would be a cycle
        owner = slot.owner = RegionOwner(
            region_id, region, lambda: self._may_write(region_id, epoch), self._clock.mono_ms
        )
        if led is not None:
            self._take_lead(slot, owner, led)
        self._spawn(owner.run())

    def _take_lead(self, slot: Slot, owner: RegionOwner, led: LedRegion) -> None:
        slot.led, owner.writes, led.on_end = led, led, owner.end
        led.on_readable, led.on_doubt = self.promises.note_opening, owner.doubt

    def _copy_roles(self, order: ServeOrder) -> CopyRoles:
        if self._roles is None:
            what = f"region {order.region_id} with copies"
            raise Refused("unsupported", what=what, region_id=order.region_id)
        return self._roles

    def _region(self, order: ServeOrder) -> ServedRegion:
        if isinstance(order, CreateRegion):
            return self._store.create(order)
        return self._store.open(order)

    async def _close(self, order: CloseRegion | DropRegion) -> None:
        slot = self._slots.get(int(order.region_id))
        if slot is None:
            return
        if slot.epoch > order.epoch:
            raise _behind(slot, order)
        await self._stop(slot)

    async def _stop(self, slot: Slot) -> None:
        """Stops a region, after the work queued ahead is answered. The region is not served here
        any more."""
        owner = slot.owner
        if slot.followed is not None:
            await slot.followed.close()
        if slot.led is not None:
            slot.led.end(Conflict("stale-epoch", reason=CLOSED))
        if owner is not None:
            with suppress(MetaError):  # it had ended by itself
                await owner.change(lambda: None, stops=True)
            await asyncio.to_thread(owner.region.close)
        self._forget(slot)

    async def retire(self, slot: Slot, owner: RegionOwner) -> None:
        """The region stopped by itself: lost regions are reported, others are not here now."""
        assert owner.stopped_by is not None
        if slot.led is not None:
            slot.led.end(owner.stopped_by)
        await asyncio.to_thread(owner.region.close)
        if self._slots.get(slot.region_id) is not slot:
            return
        if is_lost(owner.stopped_by):
            slot.state, slot.owner, slot.led = "lost", None, None
            slot.lost_ms = self._clock.mono_ms()
        else:
            self._forget(slot)

    async def retire_copy(self, followed: FollowedRegion) -> None:
        """The files of a copy are gone or damaged: it is reported, and opened again by an order."""
        await followed.close()
        slot = self._slots.get(followed.copy.region_id)
        if slot is not None and slot.followed is followed:
            slot.state, slot.followed, slot.lost_ms = "lost", None, self._clock.mono_ms()

    def _forget(self, slot: Slot) -> None:
        if self._slots.get(slot.region_id) is slot:
            del self._slots[slot.region_id]
        self._leases.forget(slot.region_id, slot.epoch)

    async def _remove_folder(self, order: DiscardRoot | QuarantineRoot | DeleteQuarantined) -> None:
        """Removes a folder that the region may not use. Raises as `must_be_unused`."""
        if not isinstance(order, DeleteQuarantined):
            must_be_unused(order, self._slots.get(int(order.region_id)))
        await asyncio.to_thread(self._store.remove_folder, order)

    def _owner_at(self, order: Order) -> RegionOwner:
        """Raises Unavailable for a region that is not open here: it must be opened first."""
        try:
            slot = self.serving(int(order.region_id))
        except NotFound as error:
            what = f"region {order.region_id}"
            raise Unavailable(what=what, reason="it is not open here") from error
        if slot.epoch != order.epoch:
            raise _behind(slot, order)
        assert slot.owner is not None
        return slot.owner

    # -- reported in heartbeats

    def stats(self) -> list[RegionStat]:
        return [stat_of(slot) for slot in self if is_reported(slot)]


def _behind(slot: Slot, order: Order) -> Conflict:
    return Conflict("stale-epoch", region_id=order.region_id, epoch=slot.epoch, found=order.epoch)


def _cause(error: MetaError) -> dict[str, object]:
    return {"cause": error.code, **{k: v for k, v in error.facts.items() if k != "region_id"}}
