"""Merges small files of the node's copies, one copy at a time, beside their flushes."""

import asyncio
from collections.abc import Callable, Iterable

import structlog

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.datanode.metrics import NodeMetrics
from dataplane.datanode.upkeep.merging import PACE_MS, RETRY_MS, merge
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.following.copy_region import CopyRegion
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

log = structlog.get_logger()


class CopyMerging:
    """One merge at a time on one thread, as `Merging`. *copies*: those that there are now."""

    def __init__(
        self, copies: Callable[[], Iterable[FollowedRegion]], clock: Clock, metrics: NodeMetrics
    ) -> None:
        self._copies, self._clock, self._metrics = copies, clock, metrics
        self._not_before_ms: dict[int, int] = {}
        """Times before which a copy whose merge failed is not merged again, by region."""

    async def run(self) -> None:
        """Merges for ever, at its own pace."""
        while True:
            await self.merge_due()
            await self._clock.sleep_ms(PACE_MS)

    async def merge_due(self) -> None:
        """Merges once in each copy that needs it and for which memory has room. A copy in doubt is
        left alone: its files are looked at."""
        now_ms = self._clock.mono_ms()
        rests = {region: ms for region, ms in self._not_before_ms.items() if ms > now_ms}
        self._not_before_ms = rests
        for copy in list(self._copies()):
            maintenance, region_id = copy.copy.maintenance, copy.copy.region_id
            if maintenance is None or copy.is_in_doubt or region_id in rests:
                continue
            if maintenance.is_merge_due():
                await self._merge(copy.copy, maintenance)

    async def _merge(self, copy: CopyRegion, maintenance: RegionMaintenance) -> None:
        region_id = copy.region_id
        try:
            done = await asyncio.to_thread(merge, maintenance)
        except MetaError as error:
            if copy.maintenance is maintenance:  # else it was closed meanwhile: nothing has failed
                log.info("copy_merge_failed", region_id=region_id, code=error.code)
                self._failed(region_id)
        except Exception:  # a fault of ours: the node goes on, and the copy with its files
            log.exception("copy_failed", region_id=region_id)
            self._failed(region_id)
        else:
            if done is not None:
                self._metrics.merged("copy", done)

    def _failed(self, region_id: int) -> None:
        """The copy rests from merges."""
        self._metrics.merges.labels("copy", "failed").inc()
        self._not_before_ms[region_id] = self._clock.mono_ms() + RETRY_MS
