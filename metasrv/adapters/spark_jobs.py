"""The Jobs port on a Spark driver process: one child, kept warm, and started anew when it dies.

`run` owns the process and is a task of the program; jobs may come from any number of steps. A
driver's life is one TaskGroup: a writer of requests, a reader of answers. When it ends, every job
that it had raises Unavailable: what such a job wrote lies under its attempt and is never adopted.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from metasrv.adapters.process_session import kill_session
from metasrv_base.clock import Clock
from metasrv_base.concurrency.backoff import Backoff
from metasrv_base.errors import MetaError, Refused, Unavailable
from metasrv_base.wire.node.jobs import (
    ANSWER,
    Answer,
    BackfillJob,
    BackfillResult,
    CancelJob,
    CheckJob,
    CheckResult,
    DriverReady,
    Job,
    JobFailed,
    JobProgress,
    JobResult,
    LoadJob,
    LoadJobResult,
    MoveJob,
    MoveResult,
    Request,
    ThrottleJob,
    ValidateJob,
    ValidateResult,
)
from metasrv_base.wire.problem.problems import KINDS
from procedures.ports import Progress

LINE_BYTES_MAX = 64 << 20  # a result lists its files: hundreds of thousands of them
REST = Backoff(first_ms=1_000, max_ms=30_000)  # between drivers that die before they are ready

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Settings of the Spark driver: its start, its memory, its deadlines."""

    work_dir: Path
    """Folder for Spark's own files, and for the driver's log."""
    master: str = "local[2]"
    driver_host: str = "127.0.0.1"
    """The host at which executors reach the driver."""
    driver_memory: str = "512m"
    is_warm: bool = False
    """Start the driver at once instead of with the first job."""
    import_folders: tuple[str, ...] = ()
    """Folders below which users' files are read; none: no file is."""
    jobs_max: int = 1024
    """The most jobs that run or wait; a further one is refused as Unavailable."""
    start_ms: int = 300_000
    """The longest start of a driver. A machine with ten times as much to do as it can takes 120 s.
    """
    job_ms: int = 3_600_000
    """The longest that a job may take: as long as a failover has."""
    cancel_ms: int = 10_000
    """The time for a cancelled job to end before the driver is killed, and for the driver to end by
    itself."""


def driver_command(settings: SparkSettings) -> tuple[str, ...]:
    return (
        *(sys.executable, "-m", "dataplane.pipelines.driver"),
        *("--spark-master", settings.master, "--spark-driver-host", settings.driver_host),
        *("--spark-driver-memory", settings.driver_memory),
        *("--work-dir", str(settings.work_dir)),
    )


@dataclass(slots=True)
class _Job:
    """A job that somebody awaits."""

    request: Job
    progress: Progress
    ended: "asyncio.Future[JobResult]"
    is_cancelled: bool = False


@dataclass(slots=True)
class _Life:
    """One driver process, from its start to its end."""

    process: asyncio.subprocess.Process
    requests: "asyncio.Queue[Request]" = field(default_factory=asyncio.Queue)
    """Bounded by `jobs_max`: a job has one request, one cancellation and a throttle at a time."""
    is_ready: bool = False

    async def kill(self) -> None:
        """Returns when the driver, its JVM and its Python workers have ended."""
        await kill_session(self.process.pid)


class SparkJobs:
    """`command` starts the driver (`driver_command`); `env` is its whole environment."""

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        clock: Clock,
        settings: SparkSettings,
    ) -> None:
        self._command = command
        self._env = env
        self._clock = clock
        self._settings = settings
        self._jobs: dict[str, _Job] = {}
        self._life: _Life | None = None
        self._wanted = asyncio.Event()
        self._closed = asyncio.Event()
        self._false_starts = 0
        self.starts = 0
        """Drivers that became ready."""
        if settings.is_warm:
            self._wanted.set()

    @property
    def driver_pid(self) -> int | None:
        """The process id of the driver; None if none has been started, or it has ended."""
        return self._life.process.pid if self._life is not None else None

    @property
    def is_driver_ready(self) -> bool:
        return self._life is not None and self._life.is_ready

    async def run(self) -> None:
        """Runs jobs until `close`. A driver starts with the first job, and again for a job after
        its end."""
        while not self._closed.is_set():
            await self._wanted.wait()
            if self._closed.is_set():
                return
            error: MetaError = Unavailable(what="Spark", reason="the driver has ended")
            try:
                await self._live()
            except* (OSError, ValueError, TimeoutError, EOFError) as failures:
                error = Unavailable(what="Spark", reason=str(failures.exceptions[0])[:500])
                log.warning("spark_driver_failed", reason=error.facts["reason"])
            finally:
                self._fail_all(error)
            if self._settings.is_warm:
                self._wanted.set()
            await self._rest()

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        result = await self._done(job, progress)
        assert isinstance(result, MoveResult), "an answer fits its job"
        return result

    async def backfill(self, job: BackfillJob, *, progress: Progress) -> BackfillResult:
        result = await self._done(job, progress)
        assert isinstance(result, BackfillResult), "an answer fits its job"
        return result

    async def validate(self, job: ValidateJob, *, progress: Progress) -> ValidateResult:
        result = await self._done(job, progress)
        assert isinstance(result, ValidateResult), "an answer fits its job"
        return result

    async def check(self, job: CheckJob, *, progress: Progress) -> CheckResult:
        """Checks rows and entries. Errors as for `validate`."""
        result = await self._done(job, progress)
        assert isinstance(result, CheckResult), "an answer fits its job"
        return result

    async def load(self, job: LoadJob, *, progress: Progress) -> LoadJobResult:
        """Loads files in the configured folders. Raises Refused for others."""
        allowed = job.model_copy(update={"folders": list(self._settings.import_folders)})
        result = await self._done(allowed, progress)
        assert isinstance(result, LoadJobResult), "an answer fits its job"
        return result

    async def throttle(self, job_id: str, rows_per_s: int | None) -> None:
        job = self._jobs.get(job_id)
        if job is None or isinstance(job.request, MoveJob):
            return
        job.request = job.request.model_copy(update={"rows_per_s": rows_per_s})
        if self._life is not None:
            self._life.requests.put_nowait(ThrottleJob(job_id=job_id, rows_per_s=rows_per_s))

    async def _done(self, job: Job, progress: Progress) -> JobResult:
        """Raises Unavailable with the code that the job failed with, or `not-ready` if it could not
        be tried. When the caller is cancelled, so is the job."""
        self._check_may_start(job)
        mine = _Job(job, progress, asyncio.get_running_loop().create_future())
        self._jobs[job.job_id] = mine
        self._wanted.set()
        if self._life is not None:
            self._life.requests.put_nowait(job)
        started = self._clock.mono_ms()
        try:
            async with asyncio.timeout(self._settings.job_ms / 1000):
                result = await asyncio.shield(mine.ended)
        except TimeoutError as error:
            raise Unavailable(what="Spark", reason="the job took too long") from error
        finally:
            try:
                if not mine.ended.done():
                    await self._cancel(mine)
            finally:
                self._jobs.pop(job.job_id, None)
        log.info(
            "spark_job_ended",
            op=job.op,
            procedure=job.procedure,
            region_id=job.region_id,
            rows_in=result.rows_in,
            duration_ms=self._clock.mono_ms() - started,
        )
        return result

    async def close(self) -> None:
        """Ends the driver, and with it every job; then `run` returns."""
        self._closed.set()
        self._wanted.set()
        if self._life is not None:
            await self._end(self._life)

    async def _rest(self) -> None:
        """Waits before another driver starts, if this one did not even start; cut short by
        `close`."""
        if self._false_starts:
            with suppress(TimeoutError):
                async with asyncio.timeout(REST.delay_ms(self._false_starts, noise=0) / 1000):
                    await self._closed.wait()

    def _check_may_start(self, job: Job) -> None:
        if self._closed.is_set():
            raise Unavailable(what="Spark", reason="closed")
        if job.job_id in self._jobs:
            raise Unavailable(what="Spark", reason="this job runs already", job_id=job.job_id)
        if len(self._jobs) >= self._settings.jobs_max:
            raise Unavailable(what="Spark", reason="the queue is full")

    async def _cancel(self, job: _Job) -> None:
        """Returns when nothing of the job runs any more: asked for first, then made sure of."""
        job.is_cancelled = True
        life = self._life
        if life is None or not life.is_ready:
            return  # the driver never heard of it, and will not
        is_obeyed = False
        try:
            life.requests.put_nowait(CancelJob(job_id=job.request.job_id))
            async with asyncio.timeout(self._settings.cancel_ms / 1000):
                await asyncio.wait([job.ended])
            is_obeyed = True
        except TimeoutError:
            log.warning("spark_job_not_cancelled", job_id=job.request.job_id)
        finally:
            if not is_obeyed:
                await life.kill()
            if job.ended.done():
                job.ended.exception()  # nobody else will look at it

    async def _live(self) -> None:
        self._false_starts += 1
        async with self._process() as life:
            ready = await self._first_answer(life)
            log.info("spark_driver_started", pid=ready.pid, master=ready.master, spark=ready.spark)
            life.is_ready = True
            self.starts += 1
            self._false_starts = 0
            async with asyncio.TaskGroup() as tasks:
                writer = tasks.create_task(self._write_requests(life))
                await self._read_answers(life)
                writer.cancel()

    async def _first_answer(self, life: _Life) -> DriverReady:
        """Waits for the driver. Raises EOFError if it ends, TimeoutError if it takes too long."""
        limit_s = self._settings.start_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                ready = await self._read(life)
        except TimeoutError as error:
            raise TimeoutError(f"it was not ready within {limit_s:g} s: see driver.log") from error
        if ready is None or ready.op != "ready":
            raise EOFError("it ended before it was ready: see driver.log")
        return ready

    @asynccontextmanager
    async def _process(self) -> AsyncIterator[_Life]:
        self._settings.work_dir.mkdir(parents=True, exist_ok=True)
        with (self._settings.work_dir / "driver.log").open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                env=dict(self._env),
                limit=LINE_BYTES_MAX,
                # Its own session: a ^C at our terminal is ours to pass on, and kill takes all.
                start_new_session=True,
            )
        life = _Life(process)
        for job in self._jobs.values():
            life.requests.put_nowait(job.request)
        self._life = life
        if self._closed.is_set():
            process.terminate()
        try:
            yield life
        finally:
            self._life = None
            self._wanted.clear()
            await self._end(life)

    async def _end(self, life: _Life) -> None:
        """The driver is asked to end; one that does not is killed, and what it may have left."""
        assert life.process.stdin is not None
        life.process.stdin.close()
        with suppress(ProcessLookupError):
            life.process.terminate()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.cancel_ms / 1000):
                    await life.process.wait()
        finally:
            await life.kill()
        await life.process.wait()

    async def _write_requests(self, life: _Life) -> None:
        assert life.process.stdin is not None
        with suppress(ConnectionError):  # it died: the reader sees that too
            while True:
                request = await life.requests.get()
                if not isinstance(request, CancelJob) and request.job_id not in self._jobs:
                    continue  # over before the driver heard of it
                life.process.stdin.write(request.model_dump_json().encode() + b"\n")
                await life.process.stdin.drain()

    async def _read_answers(self, life: _Life) -> None:
        while (answer := await self._read(life)) is not None:
            assert not isinstance(answer, DriverReady)
            job = self._jobs.get(answer.job_id)
            if job is None or job.ended.done():
                continue
            if isinstance(answer, JobProgress):
                if not job.is_cancelled:
                    job.progress(answer.done, answer.total, answer.unit)
            elif isinstance(answer, JobFailed):
                job.ended.set_exception(_failure(answer, job.request))
            else:
                job.ended.set_result(answer)
        log.info("spark_driver_ended", returncode=await life.process.wait())

    async def _read(self, life: _Life) -> Answer | None:
        """Reads an answer; returns None if the driver has closed its stdout, so that it is
        ending."""
        assert life.process.stdout is not None
        line = await life.process.stdout.readline()
        return ANSWER.validate_json(line) if line.endswith(b"\n") else None

    def _fail_all(self, error: MetaError) -> None:
        for job in self._jobs.values():
            if not job.ended.done():
                job.ended.set_exception(Unavailable(error.code, **error.facts))
        self._jobs.clear()


def _failure(failed: JobFailed, job: Job) -> MetaError:
    """A code that we do not know, of a driver that is newer, is `not-ready`."""
    kind = KINDS.get(failed.code)
    if kind is not None and kind.error is Refused and failed.facts:
        return Refused(failed.code, **failed.facts)
    if kind is not None and kind.error is Refused:
        return Refused(failed.code, region_id=job.region_id, reason=failed.detail)
    code = failed.code if failed.code in KINDS else "not-ready"
    return Unavailable(code, region_id=job.region_id, detail=failed.detail)
