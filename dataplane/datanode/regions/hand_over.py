"""Changes of leaders that are planned, at the nodes of both (docs/protocols.md P5.13).

The leader makes writes wait until the copy that leads next has its whole log, and until that copy
is named, or until a bounded time is over: then it goes on. So an order that is lost, or a server
that dies, costs a pause. A node that is named as leader, or is about to be, makes requests wait
until it serves.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

import structlog

from dataplane.datanode.copies.led_region import LedRegion
from dataplane.datanode.copies.members import addresses, has_others, leader_of
from dataplane.datanode.copies.region_waits import RegionWaits
from dataplane.datanode.ports import Spawn
from dataplane.datanode.regions.region_owner import RegionOwner
from dataplane.datanode.regions.serving_rights import ServingRights
from dataplane.datanode.regions.slot import Slot
from dataplane.region.copies.leader_view import CopyName
from dataplane.region.following.copy_region import CopyRegion
from metasrv_base.clock import Clock
from metasrv_base.errors import Conflict, MetaError, Unavailable
from metasrv_base.wire.node.batches import ReadHeader
from metasrv_base.wire.node.orders import HandOver

CATCH_UP_MS = 1_000
"""The time within which the copy must have the log: one in sync lacks what is on its way."""
COMING_MS = 3_000
"""The time for which a request waits at a node that is about to lead its region."""
PREPARED_BYTES = 64 << 10
"""Rows in memory that are written to files before the leader changes: they would be read from the
log while writes wait, small groups at some 0.1 ms each."""
FLUSH_MS, FLUSH_LOOK_MS = 1_000, 20
"""The time for which a copy is tried again that has records in its log which are not common."""

log = structlog.get_logger()


class WriteHold(NamedTuple):
    """Writes of a region wait at the leader of that epoch until that time."""

    epoch: int
    until_ms: int


class HandOvers:
    """The regions of one node whose leaders change. *slot_of*: the region here, if any."""

    def __init__(
        self,
        slot_of: Callable[[int], Slot | None],
        rights: ServingRights,
        clock: Clock,
        spawn: Spawn,
    ) -> None:
        self._slot_of, self._rights, self._clock = slot_of, rights, clock
        self._holds: dict[int, WriteHold] = {}
        self._waits = RegionWaits(clock, spawn)

    # -- orders

    async def carry_out(self, order: HandOver) -> None:
        """Raises Conflict `stale-epoch` for a former leader, `action-not-allowed` where the region
        is not led here or the copy is not in the set; Unavailable if the leader is not open yet or
        takes no writes yet, or if the copy lacks records."""
        region_id = int(order.region_id)
        slot = self._slot_of(region_id)
        if slot is None:
            raise Unavailable(what=f"region {region_id}", reason="it is not open here")
        if slot.epoch > order.epoch:
            facts = {"epoch": slot.epoch, "found": order.epoch}
            raise Conflict("stale-epoch", region_id=order.region_id, **facts)
        if order.phase == "prepare":
            await self._write_to_files(slot)
            await self._must_take_writes(slot.region_id, order.epoch)
        elif order.phase == "hold":
            await self._hold(slot, order)
        elif self._holds.get(region_id, WriteHold(0, 0)).epoch == order.epoch:
            del self._holds[region_id]

    async def _write_to_files(self, slot: Slot) -> None:
        """Flushes the region, or the copy, if it has much in memory."""
        if slot.followed is not None:
            await self._write_copy_to_files(slot.followed.copy)
        elif slot.owner is not None and slot.led is not None:
            region = slot.led.region
            if region.maintenance.memory_bytes >= PREPARED_BYTES:
                await slot.owner.change(region.maintenance.freeze)
                await asyncio.to_thread(region.maintenance.flush)

    async def _write_copy_to_files(self, copy: CopyRegion) -> None:
        """Ends also where the node's own flushes have written the rows."""
        until_ms = self._clock.mono_ms() + FLUSH_MS
        while (maintenance := copy.maintenance) and maintenance.memory_bytes >= PREPARED_BYTES:
            copy.flush_soon()
            if await asyncio.to_thread(maintenance.flush) or self._clock.mono_ms() >= until_ms:
                return
            await self._clock.sleep_ms(FLUSH_LOOK_MS)

    async def _must_take_writes(self, region_id: int, epoch: int) -> None:
        """Waits until the region takes writes, if it is led here. Raises Unavailable."""
        serves = self._rights.may_begin_to_write
        await self._until_it_leads(region_id, epoch, serves)
        if self._comes(region_id, epoch, serves):
            reason = "it does not take writes yet"
            raise Unavailable("not-ready", what=f"region {region_id}", reason=reason)

    async def _hold(self, slot: Slot, order: HandOver) -> None:
        owner, led, copy = _led_with(slot, order)
        led.must_be_readable()
        now_ms = self._clock.mono_ms()
        self._forget_ended(now_ms)
        self._holds[slot.region_id] = WriteHold(slot.epoch, now_ms + order.hold_ms)
        try:
            async with asyncio.timeout(min(CATCH_UP_MS, order.hold_ms) / 1000):
                await owner.change(lambda: None)  # behind the writes that have begun
                await led.until_it_has_all(copy)
        except TimeoutError as error:
            self._holds.pop(slot.region_id, None)
            reason = f"the copy on {copy.node} lacks records"
            raise Unavailable(
                "not-ready", what=f"region {slot.region_id}", reason=reason
            ) from error
        except MetaError:
            self._holds.pop(slot.region_id, None)
            raise
        log.info("writes_held", region_id=order.region_id, epoch=order.epoch, next=copy.node)

    def _forget_ended(self, now_ms: int) -> None:
        """Forgets the holds of regions that no writer asked for, which bounds memory by what is
        handed over at one moment."""
        self._holds = {
            region_id: hold for region_id, hold in self._holds.items() if hold.until_ms > now_ms
        }

    # -- requests

    async def may_write(self, region_id: int, epoch: int) -> None:
        """Waits as long as writes of that epoch are to wait here; then the caller judges."""
        hold = self._holds.get(region_id)
        if hold is not None:
            await self._waits.until(
                ("held", region_id), lambda: not self.is_held(region_id), hold.until_ms
            )
        await self._until_it_leads(region_id, epoch, self._rights.may_begin_to_write)

    async def may_read(self, region_id: int, query: ReadHeader) -> None:
        """The same of reads, which the leader before goes on to answer. A read with a declared age
        is one that any copy answers, and does not wait."""
        if query.max_lag_ms is None:
            await self._until_it_leads(region_id, query.epoch, self._rights.may_begin_to_read)

    def must_not_follow(self, region_id: int, epoch: int) -> None:
        """Raises Conflict `stale-epoch`, with the leader, where another node leads the region by
        now."""
        slot = self._slot_of(region_id)
        if slot is None or slot.followed is None or slot.epoch <= epoch:
            return
        facts: dict[str, object] = {"epoch": slot.epoch, "found": epoch}
        if (copies := slot.order.copies) is not None:
            leader = leader_of(copies)
            facts |= {"leader": leader.node, "address": addresses(copies).get(leader)}
        raise Conflict("stale-epoch", region_id=str(region_id), **facts)

    def is_held(self, region_id: int) -> bool:
        """Until this node follows the next leader, whom the writers are then told of."""
        hold, slot = self._holds.get(region_id), self._slot_of(region_id)
        if hold is None:
            return False
        if slot is None:
            is_between = False
        elif slot.epoch == hold.epoch:
            is_between = slot.led is not None
        else:
            is_between = slot.epoch > hold.epoch and slot.state == "opening"
        if is_between and self._clock.mono_ms() < hold.until_ms:
            return True
        del self._holds[region_id]
        return False

    async def _until_it_leads(
        self, region_id: int, epoch: int, serves: Callable[[Slot], bool]
    ) -> None:
        if not self._comes(region_id, epoch, serves):
            return
        key = (region_id, epoch, serves)
        until_ms = self._clock.mono_ms() + COMING_MS
        await self._waits.until(key, lambda: not self._comes(region_id, epoch, serves), until_ms)

    def _comes(self, region_id: int, epoch: int, serves: Callable[[Slot], bool]) -> bool:
        """Whether this node leads the region at *epoch*, or is to, and does not serve yet."""
        slot = self._slot_of(region_id)
        if slot is None or slot.epoch > epoch:
            return False
        if slot.epoch < epoch:
            return slot.followed is not None
        if slot.order.role == "copy" or not has_others(slot.order.copies):
            return False
        if slot.state != "open":
            return slot.state == "opening"
        return slot.led is not None and slot.led.ended is None and not serves(slot)


def _led_with(slot: Slot, order: HandOver) -> tuple[RegionOwner, LedRegion, CopyName]:
    """The region as this node leads it, and the copy. Raises Conflict; Unavailable for a node that
    has just started, and is yet to open the region or to be given its next epoch."""
    facts = {"region_id": order.region_id, "action": order.op}
    if slot.epoch < order.epoch or slot.state in ("opening", "restarted"):
        reason = "it is not open here yet"
        raise Unavailable("not-ready", what=f"region {order.region_id}", reason=reason)
    if slot.owner is None or slot.led is None or slot.epoch != order.epoch:
        raise Conflict("action-not-allowed", state="this node does not lead copies of it", **facts)
    copy = CopyName(order.node or "", order.root or "")
    if copy not in slot.led.view.members.in_sync - {slot.led.view.name}:
        state = f"the copy on {order.node} is not in its set"
        raise Conflict("action-not-allowed", state=state, **facts)
    return slot.owner, slot.led, copy
