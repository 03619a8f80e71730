"""The Jobs port, saying of each job how long it took, how it ended and what it moved."""

from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass

from base.clock import Clock
from base.errors import MetaError
from base.wire.jobs import MoveJob, MoveResult
from procedures.ports import Jobs, Progress


@dataclass(frozen=True, slots=True)
class JobEnd:
    outcome: str
    """`done`, `cancelled`, or the code of its error."""
    took_ms: int
    result: MoveResult | None


Tell = Callable[[JobEnd], None]


@dataclass(frozen=True, slots=True)
class MeasuredJobs:
    """Implements procedures.ports.Jobs."""

    jobs: Jobs
    clock: Clock
    tell: Tell

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        began_ms = self.clock.mono_ms()
        try:
            result = await self.jobs.move(job, progress=progress)
        except CancelledError:
            self._tell("cancelled", began_ms)
            raise
        except MetaError as error:
            self._tell(error.code, began_ms)
            raise
        self._tell("done", began_ms, result)
        return result

    def _tell(self, outcome: str, began_ms: int, result: MoveResult | None = None) -> None:
        self.tell(JobEnd(outcome, self.clock.mono_ms() - began_ms, result))
