"""One round of a reorg: the rows of some regions become files of entries, several at once.

A round ends when its regions are read, or has gone on for a while: then it is stored what it came
to. A region that cannot be read keeps no other from it, and is in the next round again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from keys.model.tables import RegionRoute
from metasrv_base.concurrency.fanout import fan_out
from metasrv_base.errors import MetaError, NotFound, Refused, Unavailable, Unknown
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import BackfillJob, JobIndex
from procedures.context import Context
from procedures.elements.reorg import BuiltFiles, IndexReorg, RoundPace, rate_per_s, with_made
from procedures.elements.reorg_pace import PaceInput, paced
from procedures.engine.retry import is_definite
from procedures.steps.marks import snapshot_of

LOOK_MS = 1_000  # between looks at what statements take beside it
ROUND_MS = 30_000  # behind it a round begins no job: that much work a crash may cost, and its jobs


@dataclass(slots=True)
class Round:
    """The state of one round while it runs."""

    context: Context
    reorg: IndexReorg
    index: JobIndex
    began_ms: int
    made: list[BuiltFiles] = field(default_factory=list)
    failures: list[MetaError] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    """Read so far, by job."""
    running: dict[str, int | None] = field(default_factory=dict)
    """Jobs, with the rate that each was given: that of all of them together."""
    rows_at_pace: int = 0
    """Read when the rate was set."""
    first_ms: int = 0
    """Time at which the first rows were read: until then Spark may only have been starting."""
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, regions: Sequence[RegionRoute]) -> IndexReorg:
        """Raises Unavailable if not one of them could be read, and what a job was refused with."""
        self._show()
        self._update_pace()
        reading: Callable[[], Awaitable[None]] = partial(self._read_all, regions)
        await fan_out([reading, self._keep_pace], at_once=2)
        refused = [failure for failure in self.failures if isinstance(failure, Refused)]
        if refused or not self.made:
            definite = [failure for failure in self.failures if is_definite(failure)]
            raise [*refused, *definite, *self.failures][0]
        return with_made(self.reorg, self.made, self._pace.ms)

    async def _read_all(self, regions: Sequence[RegionRoute]) -> None:
        width = self.context.ports.reorg_width
        reads = [partial(self._read, region) for region in regions[: width.regions]]
        try:
            await fan_out(reads, at_once=width.jobs)
        finally:
            self.over.set()

    async def _keep_pace(self) -> None:
        """Tells the jobs how fast they may read together, whenever that changes, until all are
        over."""
        while not self.over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_MS / 1_000):
                    await self.over.wait()
            self._update_pace()
            for job, job_rate in tuple(self.running.items()):
                rate = self.context.live.pace.rows_per_s
                if job in self.running and rate != job_rate:
                    self.running[job] = rate
                    await self.context.ports.jobs.throttle(job, rate)

    def _update_pace(self) -> None:
        live, now_ms, read = self.context.live, self.context.ports.clock.mono_ms(), self._pace.rows
        since_ms = max(live.pace.since_ms, self.began_ms)
        pace = paced(
            live.pace,
            PaceInput(
                now_ms=now_ms,
                p99_ms=self.context.ports.schema_sync.statement_p99_ms(),
                p99_before_ms=self.reorg.p99_before_ms,
                rows_per_s=(read - self.rows_at_pace) * 1_000 / max(LOOK_MS, now_ms - since_ms),
                operator_rows_per_s=self.context.wanted_rows_per_s(),
            ),
        )
        if pace.since_ms != live.pace.since_ms:
            self.rows_at_pace = read
        live.pace = pace

    @property
    def _pace(self) -> RoundPace:
        """The pace of this round so far."""
        elapsed_ms = self.context.ports.clock.mono_ms() - (self.first_ms or self.began_ms)
        return RoundPace(rows=sum(self.rows.values()), ms=elapsed_ms)

    async def _read(self, region: RegionRoute) -> None:
        if self.made and self.context.ports.clock.mono_ms() - self.began_ms >= ROUND_MS:
            return
        try:
            snapshot = await snapshot_of(self.context, region)
            self.made.append(await self._made(region, snapshot))
        except NotFound as error:  # it has just left that node, or has not been opened yet
            what = f"region {region.region_id}"
            self.failures.append(Unavailable("not-ready", what=what, reason=error.code))
        except (Refused, Unavailable, Unknown) as error:
            self.failures.append(error)

    async def _made(self, region: RegionRoute, snapshot: Snapshot) -> BuiltFiles:
        """Runs a job under a new name, so that writes of an earlier job do no harm; returns its
        files."""
        ports = self.context.ports
        name = f"{self.context.procedure}-{self.reorg.rounds}-{ports.ids.procedure_id()}"
        self.running[name] = self.context.live.pace.rows_per_s
        job = BackfillJob(
            job_id=name,
            procedure=self.context.procedure,
            attempt=f"attempts/{name}",
            snapshot=snapshot,
            index=self.index,
            rows_per_s=self.running[name],
        )
        try:
            built = await ports.jobs.backfill(job, progress=partial(self._progress, name))
        finally:
            del self.running[name]
        return BuiltFiles(
            region=region.number,
            epoch=snapshot.epoch,
            attempt=job.attempt,
            files=tuple(file.model_dump() for file in built.files),
            rows=built.rows_in,
            entries=built.entries,
            bytes=built.bytes_out,
        )

    def _progress(self, job: str, done: int, _total: int, _unit: str) -> None:
        if done and not any(self.rows.values()):
            self.first_ms = self.context.ports.clock.mono_ms()
        self.rows[job] = done
        self._show()

    def _show(self) -> None:
        done = self.reorg.rows + sum(self.rows.values())
        self.context.progress(min(done, self.reorg.rows_total), self.reorg.rows_total, "rows")
        self.context.live.rate_per_s = rate_per_s(self.reorg, self._pace)
