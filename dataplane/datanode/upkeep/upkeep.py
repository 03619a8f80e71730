"""The upkeep of regions beside writes and reads: flushes, closed logs, and ending those that are
over."""

import asyncio
from collections.abc import Sequence

import structlog

from dataplane.datanode.regions.region_owner import RegionOwner
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.datanode.regions.slot import Slot
from dataplane.region.memory.budget import MemoryBudget
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

PACE_MS = 500
LOG_IDLE_MS = 30_000
"""A log that nobody has written to for so long is closed: an idle region has no open file."""
RETRY_MS = 60_000
"""The pause after a fault of our own in a region: the node goes on, and the region with its log."""
FLUSHES_AT_ONCE_MAX = 2
"""The most flushes at a time. Each encodes a memtable, which takes a core and its size in memory
once more."""

log = structlog.get_logger()


class Upkeep:
    def __init__(
        self, regions: NodeRegionSet, clock: Clock, budget: MemoryBudget | None = None
    ) -> None:
        self._regions = regions
        self._budget = budget or MemoryBudget()
        self._clock = clock
        self._places = asyncio.Semaphore(FLUSHES_AT_ONCE_MAX)
        self._not_before_ms: dict[int, int] = {}
        """Times before which a region that had a fault is left alone, by region."""

    async def run(self) -> None:
        """Looks after regions for ever, at its own pace."""
        while True:
            await self.look_after()
            await self._clock.sleep_ms(PACE_MS)

    async def look_after(self) -> None:
        """Once, all regions."""
        now_ms = self._clock.mono_ms()
        rests = {region: ms for region, ms in self._not_before_ms.items() if ms > now_ms}
        self._not_before_ms = rests
        owned = [(slot, slot.owner) for slot in self._regions if slot.owner is not None]
        for _, owner in owned:
            owner.region.maintenance.forget_statements()
        large = self._largest([owner for _, owner in owned if owner.region_id not in rests])
        await asyncio.gather(*(self._relieve(owner) for owner in large))
        due = [(slot, owner) for slot, owner in owned if self._has_work(owner)]
        await asyncio.gather(*(self._look_after(slot, owner) for slot, owner in due))

    def _largest(self, owners: Sequence[RegionOwner]) -> list[RegionOwner]:
        """The regions to be flushed until the node has room again, the largest first."""
        excess, chosen = self._budget.excess, []
        held = [(owner.region.stats().memtable_bytes, owner) for owner in owners if excess]
        for size, owner in sorted(held, key=lambda pair: -pair[0]):
            if excess <= 0 or not size:
                break
            chosen.append(owner)
            excess -= size
        return chosen

    async def _relieve(self, owner: RegionOwner) -> None:
        try:
            async with self._places:
                await asyncio.to_thread(owner.region.maintenance.flush)
        except MetaError as error:
            log.warning("region_upkeep_failed", region_id=owner.region_id, code=error.code)
            if owner.region.stopped is not None:
                owner.end(owner.region.stopped)
        except Exception:
            log.exception("region_upkeep_failed", region_id=owner.region_id)
            self._rest(owner)

    def _rest(self, owner: RegionOwner) -> None:
        """Leaves a region alone for a while after a fault of our own."""
        self._not_before_ms[owner.region_id] = self._clock.mono_ms() + RETRY_MS
        if owner.region.stopped is not None:
            owner.end(owner.region.stopped)

    def _has_work(self, owner: RegionOwner) -> bool:
        if owner.stopped_by is not None:
            return True
        if owner.region_id in self._not_before_ms:
            return False
        return (
            owner.region.maintenance.needs_flush()
            or owner.region.maintenance.has_unread_files()
            or _is_untidy(owner)
            or self._is_log_idle(owner)
        )

    async def _look_after(self, slot: Slot, owner: RegionOwner) -> None:
        if owner.stopped_by is None:
            try:
                await self._do_what_is_due(owner)
            except MetaError as error:
                log.warning("region_upkeep_failed", region_id=slot.region_id, code=error.code)
                if owner.region.stopped is not None:
                    owner.end(owner.region.stopped)
            except Exception:
                log.exception("region_upkeep_failed", region_id=slot.region_id)
                self._rest(owner)
        if owner.stopped_by is not None:
            await self._regions.retire(slot, owner)
            log.warning("region_stopped", region_id=slot.region_id, code=owner.stopped_by.code)

    async def _do_what_is_due(self, owner: RegionOwner) -> None:
        if owner.region.maintenance.has_unread_files():
            await asyncio.to_thread(owner.region.maintenance.sweep)
        if _is_untidy(owner):
            await asyncio.to_thread(
                owner.region.maintenance.collect
            )  # with nothing borrowed no job runs
            owner.is_tidy = True
        if owner.region.maintenance.needs_flush():
            async with self._places:
                await asyncio.to_thread(owner.region.maintenance.flush)
        if self._is_log_idle(owner):
            owner.written_ms = None
            await asyncio.to_thread(owner.region.maintenance.close_log)

    def _is_log_idle(self, owner: RegionOwner) -> bool:
        written_ms = owner.written_ms
        return written_ms is not None and self._clock.mono_ms() - written_ms >= LOG_IDLE_MS


def _is_untidy(owner: RegionOwner) -> bool:
    region = owner.region
    return not owner.is_tidy and not region.borrowed_roots and not region.has_marks
