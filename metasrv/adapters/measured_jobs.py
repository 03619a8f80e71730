"""The Jobs port, saying of each job how long it took, how it ended and what it moved."""

from asyncio import CancelledError
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError
from metasrv_base.wire.node.jobs import (
    BackfillJob,
    BackfillResult,
    CheckJob,
    CheckResult,
    JobResult,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    ValidateJob,
    ValidateResult,
)
from procedures.ports import Jobs, Progress


@dataclass(frozen=True, slots=True)
class JobEnd:
    outcome: str
    """`done`, `cancelled`, or the code of its error."""
    took_ms: int
    result: JobResult | None


Result = TypeVar("Result", bound=JobResult)
Tell = Callable[[JobEnd], None]


@dataclass(frozen=True, slots=True)
class MeasuredJobs:
    """Implements procedures.ports.Jobs."""

    jobs: Jobs
    clock: Clock
    tell: Tell

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        return await self._measured(self.jobs.move(job, progress=progress))

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        return await self._measured(self.jobs.backfill(job, progress=progress))

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        return await self._measured(self.jobs.validate(job, progress=progress))

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        return await self._measured(self.jobs.check(job, progress=progress))

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        return await self._measured(self.jobs.load(job, progress=progress))

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        await self.jobs.throttle(job_id, rows_per_s)

    async def _measured(self, work: Awaitable[Result]) -> Result:
        began_ms = self.clock.mono_ms()
        try:
            result = await work
        except CancelledError:
            self._tell("cancelled", began_ms)
            raise
        except MetaError as error:
            self._tell(error.code, began_ms)
            raise
        self._tell("done", began_ms, result)
        return result

    def _tell(self, outcome: str, began_ms: int, result: JobResult | None = None) -> None:
        self.tell(JobEnd(outcome, self.clock.mono_ms() - began_ms, result))
