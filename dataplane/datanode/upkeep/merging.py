"""Merges small files of the node's regions, one region at a time, beside everything else."""

import asyncio

import pyarrow as pa
import structlog

from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.regions.region_owner import RegionOwner
from dataplane.datanode.regions.regions import NodeRegionSet
from dataplane.region.compaction.compaction import Merged
from dataplane.region.engines.engine import RegionUpkeep
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

PACE_MS = 1_000
RETRY_MS = 60_000
"""The pause after a merge that failed, most often because the disk was too full: writers need the
rest."""

log = structlog.get_logger()


class Merging:
    """One merge at a time on one thread: it takes at most a core, and bounded memory."""

    def __init__(self, regions: NodeRegionSet, clock: Clock, metrics: NodeMetrics) -> None:
        self._regions = regions
        self._clock = clock
        self._metrics = metrics
        self._not_before_ms: dict[int, int] = {}
        """Times before which a region that failed is not merged again, by region."""

    async def run(self) -> None:
        """Merges for ever. Merges that are due follow each other at once."""
        while True:
            if not await self.merge_next():
                await self._clock.sleep_ms(PACE_MS)

    async def merge_next(self) -> bool:
        """The region with the most files of those that need it; False: none does, or memory has no
        room for it now."""
        now = self._clock.mono_ms()
        failed = self._not_before_ms.items()
        self._not_before_ms = {region: until for region, until in failed if until > now}
        due = [owner for owner in self._serving() if self._is_due(owner)]
        for owner in sorted(due, key=lambda owner: -owner.region.file_count):
            if await self._merge(owner):
                return True
        return False

    async def _merge(self, owner: RegionOwner) -> bool:
        """Merges files of a region; returns False if memory has no room for it now."""
        try:
            done = await asyncio.to_thread(merge, owner.region.maintenance)
        except MetaError as error:
            if owner.stopped_by is None:  # else it was closed meanwhile: nothing has failed
                facts = {"code": error.code, "facts": error.facts}
                log.warning("region_merge_failed", region_id=owner.region_id, **facts)
                self._failed(owner)
        except Exception:  # a fault of ours: the node goes on, and the region with its files
            log.exception("region_merge_failed", region_id=owner.region_id)
            self._failed(owner)
        else:
            if done is None:
                return False
            self._metrics.merged("leader", done)
        return True

    def _failed(self, owner: RegionOwner) -> None:
        self._metrics.merges.labels("leader", "failed").inc()
        self._not_before_ms[owner.region_id] = self._clock.mono_ms() + RETRY_MS
        if owner.region.stopped is not None:
            owner.end(owner.region.stopped)

    def _serving(self) -> list[RegionOwner]:
        owners = (slot.owner for slot in self._regions)
        return [owner for owner in owners if owner is not None and owner.stopped_by is None]

    def _is_due(self, owner: RegionOwner) -> bool:
        is_waiting = owner.region_id in self._not_before_ms
        return not is_waiting and owner.region.maintenance.is_merge_due()


def merge(maintenance: RegionUpkeep) -> Merged | None:
    """Merges files of a region. None: nothing is due, or memory has no room for it now."""
    done = maintenance.compact()
    pa.default_memory_pool().release_unused()  # else it keeps what one merge needed
    return done
