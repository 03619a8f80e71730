"""The regions of this node: which are open at which epoch, and what orders do to them."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal, assert_never

from dataplane.datanode.ports import RegionStore, Spawn
from dataplane.datanode.regions.leases import RegionLeases
from dataplane.datanode.regions.refusals import Refusals
from dataplane.datanode.regions.region_owner import RegionOwner, is_lost, no_lease
from dataplane.datanode.regions.store import schema_of
from dataplane.region.engines.engine import ServedRegion
from dataplane.region.manifests.adoption import Ingest
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, MetaError, NotFound, Unavailable
from metasrv_base.wire.node.nodes import RegionStat
from metasrv_base.wire.node.orders import (
    AdoptFiles,
    CloseRegion,
    CreateRegion,
    DiscardRoot,
    DropRegion,
    IngestFiles,
    OpenRegion,
    Order,
    SetSchema,
)

ServeOrder = CreateRegion | OpenRegion
State = Literal["opening", "open", "lost"]

LOST_RETRY_MS = 15_000
"""The interval at which instructions of heartbeats look for lost storage again. An order of a
procedure looks at once; each look leaves a fence."""


@dataclass(slots=True)
class Slot:
    """A region that this node was ordered to serve, at one epoch."""

    order: ServeOrder
    state: State = "opening"
    owner: RegionOwner | None = None
    """Set while `open`."""
    lost_ms: int = 0
    """The time at which it was last found `lost`."""

    @property
    def region_id(self) -> int:
        return int(self.order.region_id)

    @property
    def epoch(self) -> int:
        return self.order.epoch


class NodeRegionSet:
    """Orders come one at a time per region (the order desk sees to it)."""

    def __init__(
        self, store: RegionStore, leases: RegionLeases, clock: Clock, spawn: Spawn
    ) -> None:
        self._store = store
        self._leases = leases
        self._clock = clock
        self._spawn = spawn
        self._slots: dict[int, Slot] = {}
        self.refusals = Refusals()

    # -- asked by reads and writes

    def __iter__(self) -> Iterator[Slot]:
        return iter(list(self._slots.values()))

    def serving(self, region_id: int) -> Slot:
        """The open region. NotFound: not here. Unavailable: opening, or `region-lost`. Conflict:
        a higher fence ended it here."""
        slot = self._slots.get(region_id)
        if slot is None:
            raise NotFound(what="region", name=str(region_id))
        if slot.state == "lost":
            raise Unavailable("region-lost", region_id=region_id)
        if slot.owner is None:
            raise Unavailable(what=f"region {region_id}", reason="it is being opened")
        slot.owner.must_serve()
        return slot

    def has_lease(self, region_id: int, epoch: int) -> bool:
        return self._leases.is_held(region_id, epoch, self._clock.mono_ms())

    def must_have_lease(self, slot: Slot) -> None:
        if not self.has_lease(slot.region_id, slot.epoch):
            raise no_lease(slot.region_id)

    def is_worth_trying(self, order: Order) -> bool:
        """False: an instruction to open what was found lost a moment ago."""
        slot = self._slots.get(int(order.region_id))
        if slot is None or slot.state != "lost" or not isinstance(order, OpenRegion):
            return True
        return self._clock.mono_ms() - slot.lost_ms >= LOST_RETRY_MS

    # -- told by orders

    def renew_by(self, order: Order) -> None:
        slot = self._slots.get(int(order.region_id))
        if slot is not None and isinstance(order, ServeOrder) and slot.epoch == order.epoch:
            self._leases.granted_by_order(slot.region_id, slot.epoch, order.lease)

    async def carry_out(self, order: Order) -> int | None:
        """The row version at which a floor took hold, of an order that raises one."""
        match order:
            case CreateRegion() | OpenRegion():
                await self._serve(order)
            case SetSchema():
                return await self._set_schema(self._owner_at(order), order)
            case CloseRegion():
                await self._close(order)
            case DropRegion():
                await self._close(order)
                await asyncio.to_thread(self._store.drop, order)
            case AdoptFiles():
                owner = self._owner_at(order)
                await owner.change(lambda: adopt(owner.region, order))
            case IngestFiles():
                await ingest(self._owner_at(order), order)
            case DiscardRoot():
                owner = self._owner_at(order)
                await owner.change(lambda: self._store.discard(order, owner.region))
            case _:
                assert_never(order)
        return None

    async def close_all(self) -> None:
        """Closes every region and its log, before the process ends. Deletes nothing."""
        for slot in self:
            await self._stop(slot)

    # -- the life of a slot

    async def _serve(self, order: ServeOrder) -> None:
        slot = self._slots.get(int(order.region_id))
        if slot is not None:
            if slot.epoch > order.epoch:
                raise _behind(slot, order)
            owner = slot.owner
            is_serving = owner is not None and owner.stopped_by is None
            if owner is not None and is_serving and is_here(slot.order, order):
                await self._set_schema(owner, order)
                return
            await self._stop(slot)
        slot = self._slots[int(order.region_id)] = Slot(order)
        await self._bring_up(slot)

    async def _set_schema(self, owner: RegionOwner, order: ServeOrder | SetSchema) -> int:
        schema, region = schema_of(order), owner.region
        if not isinstance(order, SetSchema):
            return await owner.change(lambda: region.set_schema(schema))
        mark, close, reserves = order.mark, order.close_marks, order.reserves_version
        if close:
            owner.is_tidy = False  # output of jobs that was not adopted is obsolete now
        return await owner.change(lambda: region.set_schema(schema, mark, close, reserves=reserves))

    async def _bring_up(self, slot: Slot) -> None:
        try:
            region = await asyncio.to_thread(self._region, slot.order)
        except MetaError as error:
            if is_lost(error):
                slot.state, slot.lost_ms = "lost", self._clock.mono_ms()
                raise Unavailable(
                    "region-lost", region_id=slot.order.region_id, **_cause(error)
                ) from error
            del self._slots[slot.region_id]
            raise
        region_id, epoch = slot.region_id, slot.epoch
        slot.owner = RegionOwner(
            region_id, region, lambda: self.has_lease(region_id, epoch), self._clock.mono_ms
        )
        slot.state = "open"
        self._spawn(slot.owner.run())

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
        if owner is not None:
            with suppress(MetaError):  # it had ended by itself
                await owner.change(lambda: None, stops=True)
            await asyncio.to_thread(owner.region.close)
        self._forget(slot)

    async def retire(self, slot: Slot, owner: RegionOwner) -> None:
        """The region stopped by itself: lost regions are reported, others are not here now."""
        assert owner.stopped_by is not None
        await asyncio.to_thread(owner.region.close)
        if self._slots.get(slot.region_id) is not slot:
            return
        if is_lost(owner.stopped_by):
            slot.state, slot.owner, slot.lost_ms = "lost", None, self._clock.mono_ms()
        else:
            self._forget(slot)

    def _forget(self, slot: Slot) -> None:
        if self._slots.get(slot.region_id) is slot:
            del self._slots[slot.region_id]
        self._leases.forget(slot.region_id, slot.epoch)

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


def is_reported(slot: Slot) -> bool:
    """A region that a higher fence has ended is not here any more."""
    stopped_by = slot.owner.stopped_by if slot.owner is not None else None
    return stopped_by is None or is_lost(stopped_by)


def stat_of(slot: Slot) -> RegionStat:
    lost = slot.owner is not None and slot.owner.stopped_by is not None
    size = slot.owner.region.stats() if slot.owner is not None and not lost else None
    return RegionStat(
        region_id=slot.order.region_id,
        epoch=slot.epoch,
        state="lost" if lost else slot.state,
        rows=size.rows if size else 0,
        bytes=size.bytes if size else 0,
        wal_bytes=size.wal_bytes if size else 0,
        files=size.files if size else 0,
        borrowed_bytes=size.borrowed_bytes if size else 0,
        version=size.version if size else 0,
        root=slot.order.root,
    )


def _behind(slot: Slot, order: Order) -> Conflict:
    return Conflict("stale-epoch", region_id=order.region_id, epoch=slot.epoch, found=order.epoch)


def is_here(order: ServeOrder, again: ServeOrder) -> bool:
    """Whether a region that serves by `order` serves as `again` asks, but for its schema. A root
    that it may stop to borrow it has stopped to borrow already, by adoption."""
    return order.root == again.root and order.epoch == again.epoch


def adopt(region: ServedRegion, order: AdoptFiles) -> None:
    region.file_ingest.adopt(order.procedure, order.attempt, order.files)
    if not region.borrowed_roots:
        region.maintenance.collect()


def ingest_of(order: IngestFiles) -> Ingest:
    return Ingest(
        order.procedure,
        order.attempt,
        order.index,
        order.mark,
        order.files,
        tuple(order.unique_columns),
    )


async def ingest(owner: RegionOwner, order: IngestFiles) -> None:
    """Writers wait for the end of it alone."""
    region, source = owner.region, ingest_of(order)
    prepared = None
    if order.prepares or source.unique_columns:
        prepared = await asyncio.to_thread(region.file_ingest.prepare, source)
    while not order.prepares and prepared is not None and not prepared.is_whole:
        await owner.change(partial(region.file_ingest.settle, source, prepared))
        prepared = await asyncio.to_thread(region.file_ingest.prepare, source)
    if not order.prepares:
        await owner.change(lambda: region.file_ingest.ingest(source, prepared))


def _cause(error: MetaError) -> dict[str, object]:
    return {"cause": error.code, **{k: v for k, v in error.facts.items() if k != "region_id"}}
