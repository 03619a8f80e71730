"""The upkeep of this node's copies: what is common to the set is flushed. What is not common yet is
in no memtable, so it never comes into a file (P5.9). Merges, which take long, run beside it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from dataplane.datanode.copies.followed import FollowedRegion
from dataplane.region.engine.maintenance import RegionMaintenance
from dataplane.region.memory.budget import MemoryBudget
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

PACE_MS = 500
RETRY_MS = 60_000
"""The pause after a fault of our own in a copy: the node goes on, and the copy with its log."""

log = structlog.get_logger()


class CopyUpkeep:
    """One copy at a time, in a thread. *copies*: those that there are now; *retire* takes one whose
    files are gone."""

    def __init__(
        self,
        copies: Callable[[], Iterable[FollowedRegion]],
        clock: Clock,
        budget: MemoryBudget,
        retire: Callable[[FollowedRegion], Awaitable[None]],
    ) -> None:
        self._copies, self._clock, self._budget = copies, clock, budget
        self._retire = retire
        self._not_before_ms: dict[int, int] = {}
        """Times before which a copy that had a fault is left alone, by region."""

    async def run(self) -> None:
        """Looks after copies for ever, at its own pace."""
        while True:
            await self.look_after()
            await self._clock.sleep_ms(PACE_MS)

    async def look_after(self) -> None:
        """Once, all copies. A copy whose files fail is opened anew by the next records."""
        now_ms = self._clock.mono_ms()
        rests = {region: ms for region, ms in self._not_before_ms.items() if ms > now_ms}
        self._not_before_ms = rests
        for copy in list(self._copies()):
            region_id = copy.copy.region_id
            try:
                if copy.is_in_doubt and await copy.is_lost():
                    log.warning("copy_lost", region_id=region_id, root=copy.root)
                    await self._retire(copy)
                elif region_id not in rests:
                    await self._look_after(copy)
            except MetaError as error:
                log.info("copy_upkeep_failed", region_id=region_id, code=error.code)
            except Exception:
                log.exception("copy_failed", region_id=region_id)
                self._not_before_ms[region_id] = now_ms + RETRY_MS

    async def _look_after(self, copy: FollowedRegion) -> None:
        maintenance = copy.copy.maintenance
        if maintenance is None:
            await copy.open_for_readers()
        elif self._has_work(copy, maintenance):
            tidies = copy.tidied is not maintenance
            await asyncio.to_thread(self._do_what_is_due, maintenance, tidies=tidies)
            copy.tidied = maintenance

    def _has_work(self, copy: FollowedRegion, maintenance: RegionMaintenance) -> bool:
        return (
            copy.tidied is not maintenance
            or maintenance.needs_flush()
            or maintenance.has_unread_files()
            or self._budget.excess > 0
        )

    def _do_what_is_due(self, maintenance: RegionMaintenance, *, tidies: bool) -> None:
        maintenance.forget_statements()
        if maintenance.has_unread_files():
            maintenance.sweep()
        if maintenance.needs_flush() or self._budget.excess > 0:
            maintenance.flush()
        if tidies:
            maintenance.collect()
