"""A job between its line and its answer: how far it is, how fast it may go, whether it ends."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Lock

from pydantic import JsonValue
from pyspark.accumulators import Accumulator
from pyspark.sql import SparkSession

from dataplane.pipelines.pace import PaceAddress, PaceServer, SharedBucket
from metasrv_base.clock import SystemClock
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.jobs import Job, JobFailed, JobProgress, MoveJob

DETAIL_CHARS_MAX = 2000  # of a failure: Java's traces are long


class RunningJob:
    """Implements tasks.Watch."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        tag: str,
        send: Callable[[JobProgress], None],
        beside: "RunningJob | None" = None,
    ) -> None:
        """Starts nothing yet. *beside* is another job of the same procedure, with which it shares a
        rate."""
        self.job = job
        self._send = send
        self.tag = tag
        self.cancelled = Event()
        self._spark = spark
        self._counter: Accumulator[int] | None = None
        self._bucket: SharedBucket | None = None
        if not isinstance(job, MoveJob):
            shared = None if beside is None else beside._bucket
            self._bucket = SharedBucket(job.rows_per_s, SystemClock(), shared)
        self._total: int | None = None
        """The number of items; None if it has not begun to count."""
        self._reported = -1
        self._telling = Lock()

    def begin(self, total: int) -> Accumulator[int]:
        self._total = total
        self._counter = self._spark.sparkContext.accumulator(0)
        return self._counter

    @contextmanager
    def paced(self, rows: int) -> Iterator[PaceAddress]:
        assert self._bucket is not None, "a job that reads rows"
        host = self._spark.sparkContext.getConf().get("spark.driver.host", "127.0.0.1")
        self._total = rows
        with PaceServer(self._bucket, host) as server:
            yield server.address
        self._bucket.settle()
        self.check()

    def throttle(self, rows_per_s: int | None) -> None:
        if self._bucket is not None:
            self._bucket.throttle(rows_per_s)

    def cancel(self) -> None:
        self.cancelled.set()
        if self._bucket is not None:
            self._bucket.stop()

    def check(self) -> None:
        """Between two passes: whoever waits hears of each."""
        self.tell()
        if self.cancelled.is_set():
            raise Unavailable("not-ready", reason="cancelled")

    def failed(
        self, code: str, detail: str, facts: Mapping[str, JsonValue] | None = None
    ) -> JobFailed:
        return JobFailed(
            job_id=self.job.job_id,
            code=code,
            detail=detail[:DETAIL_CHARS_MAX],
            facts=dict(facts or {}),
        )

    def tell(self) -> None:
        """Sends the progress since the last report, if there is any. On return it has been sent,
        perhaps by another thread."""
        with self._telling:
            report = self._news()
            if report is not None:
                self._send(report)

    def _news(self) -> JobProgress | None:
        if self._total is None:
            return None
        # A task that ran twice counts twice.
        done = min(self._done(), self._total)
        if done <= self._reported:
            return None
        self._reported = done
        unit = "bytes" if self._bucket is None else "rows"
        return JobProgress(job_id=self.job.job_id, done=done, total=self._total, unit=unit)

    def _done(self) -> int:
        if self._bucket is not None:
            return self._bucket.paid
        return 0 if self._counter is None else int(self._counter.value)
