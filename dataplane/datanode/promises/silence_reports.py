"""Reports leaders that are silent to metasrv (docs/protocols.md P4.5)."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from dataplane.datanode.promises.shared_regions import PromisePorts
from dataplane.region.copies.leader_silence import (
    FOLLOW_MS,
    WATCH_MS,
    FollowedHere,
    SilentLeader,
)
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.silences import SILENT_REGIONS_MAX, SilenceAnswer, SilenceReport

REPORT_MS_MAX = 2_000
"""The time for which metasrv is waited for. It looks at the leader meanwhile."""

log = structlog.get_logger()


class SilencePort(Protocol):
    """metasrv, as it is told of silence. Raises the five errors."""

    async def report_silence(self, report: SilenceReport, deadline_ms: int) -> SilenceAnswer: ...


class SilenceReports:
    """`run` watches for ever. One report of a leader at a time."""

    def __init__(
        self,
        ports: PromisePorts,
        followed: Callable[[], Iterable[FollowedHere]],
        metasrv: SilencePort,
    ) -> None:
        """*followed* returns the copies of this node that are in the sets of their regions."""
        self._ports = ports
        self._followed = followed
        self._metasrv = metasrv
        self._reporting: set[str] = set()
        self._next: dict[str, int] = {}
        """Leader -> the position of the first region of its next report, where one report cannot
        name them all. Others begin at 0."""

    async def run(self) -> None:
        clock, silence = self._ports.clock, self._ports.silence
        last_ms = clock.mono_ms()
        followed_ms: int | None = None
        async with asyncio.TaskGroup() as tasks:
            while True:
                now_ms = clock.mono_ms()
                stalled_ms = now_ms - last_ms - WATCH_MS
                if stalled_ms > WATCH_MS:  # this process, not the leaders, was away
                    silence.forgive(stalled_ms, now_ms)
                last_ms = now_ms
                if followed_ms is None or now_ms - followed_ms >= FOLLOW_MS:
                    silence.follow(self._followed(), now_ms)
                    followed_ms = now_ms
                for silent in silence.due(now_ms):
                    if silent.leader not in self._reporting:
                        self._reporting.add(silent.leader)
                        tasks.create_task(self._report_and_leave(silent))
                await clock.sleep_ms(WATCH_MS)

    async def report(self, silent: SilentLeader) -> None:
        """Tells metasrv once. Reports that are answered name the regions in turn."""
        me, first = self._ports.membership, self._next.get(silent.leader, 0)
        regions = silent.regions[first : first + SILENT_REGIONS_MAX]
        if not regions:
            regions, first = silent.regions[:SILENT_REGIONS_MAX], 0
        if me.cluster_id is None:
            return
        report = SilenceReport(
            cluster_id=me.cluster_id,
            node_id=me.identity.node_id,
            incarnation=me.identity.incarnation,
            leader=silent.leader,
            silent_ms=silent.silent_ms,
            region_id=[str(each.region_id) for each in regions],
            epoch=[each.epoch for each in regions],
        )
        facts = {"leader": silent.leader, "regions": len(silent.regions)}
        try:
            answer = await self._metasrv.report_silence(report, REPORT_MS_MAX)
        except MetaError as error:
            log.info("silence_unreported", code=error.code, **facts)
        else:
            log.info("silence_reported", verdict=answer.verdict, **facts)
            following = first + len(regions)
            if following < len(silent.regions):
                self._next[silent.leader] = following
            else:
                self._next.pop(silent.leader, None)

    async def _report_and_leave(self, silent: SilentLeader) -> None:
        try:
            await self.report(silent)
        finally:
            self._reporting.discard(silent.leader)
