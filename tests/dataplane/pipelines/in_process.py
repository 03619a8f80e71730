"""As much of Spark as jobs ask for, in this process: each task runs at once, and all is counted.

What goes to a task and comes back from it is pickled as Spark would, so it is measured too.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark import TaskContext

from dataplane.pipelines.pace import PaceAddress, PaceServer, SharedBucket
from metasrv_base.clock import SystemClock


@dataclass
class Counted:
    """One job of Spark: its tasks, and bytes to and from them."""

    tasks: int = 0
    sent: int = 0
    received: int = 0


@dataclass
class InProcess:
    """Stands for a session, its context and its status."""

    defaultParallelism: int = 2  # noqa: N815 - Spark's name
    jobs: list[Counted] = field(default_factory=list)
    attempts: int = 0

    @property
    def sparkContext(self) -> "InProcess":  # noqa: N802 - Spark's name
        return self

    def parallelize(self, work: Sequence[Any], tasks: int) -> "Pieces":
        return Pieces(self, list(work), tasks)

    # The watch -----------------------------------------------------------------------------------

    @contextmanager
    def paced(self, rows: int) -> Iterator[PaceAddress]:
        with PaceServer(SharedBucket(None, SystemClock()), "127.0.0.1") as server:
            yield server.address

    def begin(self, total: int) -> "Uncounted":
        return Uncounted()

    def check(self) -> None:
        """Nobody cancels."""


class Uncounted:
    def add(self, term: int) -> None:
        """Goes with the tasks."""


@dataclass(frozen=True)
class Pieces:
    session: InProcess
    work: Sequence[Any]
    tasks: int
    task: Callable[[Any], Any] | None = None

    def map(self, task: Callable[[Any], Any]) -> "Pieces":
        return Pieces(self.session, self.work, self.tasks, task)

    def collect(self) -> list[Any]:
        job, done = Counted(self.tasks), []
        self.session.jobs.append(job)
        for number in range(self.tasks):
            first, end = (len(self.work) * edge // self.tasks for edge in (number, number + 1))
            sent = pickle.dumps((self.task, self.work[first:end]))
            task, some = pickle.loads(sent)
            with self._context():
                found = pickle.dumps([task(one) for one in some])
            job.sent += len(sent)
            job.received += len(found)
            done += pickle.loads(found)
        return done

    @contextmanager
    def _context(self) -> Iterator[None]:
        self.session.attempts += 1
        context = TaskContext._getOrCreate()
        context._taskAttemptId = self.session.attempts
        try:
            yield
        finally:
            TaskContext._setTaskContext(None)
