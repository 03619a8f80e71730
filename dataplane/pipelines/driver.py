"""The Spark driver process: jobs come as lines on stdin, their answers go as lines to stdout.

It ends, and takes its JVM along, when stdin does: whoever started it is gone, and a job without
anybody who waits for it must not run on. It ends when its JVM has ended, too: another one is
started. Nothing but answers reaches stdout: descriptor 1 becomes stderr before Spark or anything
else can print there.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from types import FrameType
from typing import assert_never

from py4j.protocol import Py4JError
from pydantic import ValidationError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dataplane.pipelines.failures import code_of
from dataplane.pipelines.jobs.backfill import backfill
from dataplane.pipelines.jobs.check import check
from dataplane.pipelines.jobs.load import load
from dataplane.pipelines.jobs.move import move
from dataplane.pipelines.jobs.validate import validate
from dataplane.pipelines.running_job import RunningJob
from dataplane.pipelines.session import (
    SessionSettings,
    end_java,
    is_over,
    java_version,
    start_session,
)
from metasrv_base.errors import MetaError, Refused
from metasrv_base.wire.node.jobs import (
    REQUEST,
    Answer,
    BackfillJob,
    CancelJob,
    CheckJob,
    DriverReady,
    Job,
    JobFailed,
    JobResult,
    LoadJob,
    MoveJob,
    ThrottleJob,
    ValidateJob,
)
from metasrv_base.wire.problem.problems import safe

JOBS_AT_ONCE = 2  # the others wait; executors are shared anyway
NICENESS = 5
"""Added to that of whoever starts the driver: statements go first where both want a processor."""
TICK_S = 0.1  # how often progress and cancellations are looked at


class JobAnswers:
    """Lines to whoever started us; safe for threads. A reader who is gone is no error here: then
    stdin ends too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = Lock()

    def send(self, answer: Answer) -> None:
        line = answer.model_dump_json().encode() + b"\n"
        with self._lock:
            try:
                while line:
                    line = line[os.write(self._descriptor, line) :]
            except BrokenPipeError:
                return


class Driver:
    """Runs jobs in threads of its own, so that a cancellation is always heard."""

    def __init__(self, spark: SparkSession, answers: JobAnswers) -> None:
        self._spark = spark
        self._answers = answers
        self._jobs: dict[str, RunningJob] = {}
        self._jobs_lock = Lock()
        self._count = 0
        self._pool = ThreadPoolExecutor(JOBS_AT_ONCE, thread_name_prefix="job")
        self._ended = Event()
        self._herald = Thread(target=self._tell, name="herald", daemon=True)

    def serve(self, lines: Iterable[bytes]) -> None:
        """Serves requests until there are no more lines. Raises ValidationError for a line that
        cannot be read."""
        self._herald.start()
        for line in lines:
            request = REQUEST.validate_json(line)
            match request:
                case CancelJob():
                    self._cancel(request.job_id)
                case ThrottleJob():
                    self._throttle(request)
                case _:
                    self._submit(request)

    def end(self) -> None:
        """Jobs that still run fail, since their JVM goes away under them."""
        self._ended.set()
        for job in self._running():
            job.cancel()
        end_java()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _submit(self, request: Job) -> None:
        with self._jobs_lock:
            if request.job_id in self._jobs:
                print(f"job {request.job_id} is running already", file=sys.stderr)
                return  # its answer answers both
            self._count += 1
            mates = (
                mate for mate in self._jobs.values() if mate.job.procedure == request.procedure
            )
            tag, send = f"job-{self._count}", self._answers.send
            job = RunningJob(self._spark, request, tag, send, next(mates, None))
            self._jobs[request.job_id] = job
        self._pool.submit(self._answer, job).add_done_callback(partial(self._finish, job))

    def _cancel(self, job_id: str) -> None:
        with self._jobs_lock:
            job = self._jobs.get(job_id)
        if job is not None:
            job.cancel()

    def _throttle(self, request: ThrottleJob) -> None:
        with self._jobs_lock:
            job = self._jobs.get(request.job_id)
        if job is not None:
            job.throttle(request.rows_per_s)

    def _finish(self, job: RunningJob, ended: Future[JobResult | JobFailed]) -> None:
        """Runs in the job's thread. Whatever happened, somebody waits for an answer."""
        if ended.cancelled():
            return  # the driver ends
        error = ended.exception()
        with self._jobs_lock:
            del self._jobs[job.job.job_id]
        job.tell()
        answer = ended.result() if error is None else job.failed(code_of(error), repr(error))
        self._answers.send(answer)
        if isinstance(answer, JobFailed) and is_over(self._spark):
            print("the session is over", file=sys.stderr)
            os.kill(os.getpid(), signal.SIGTERM)  # the main thread reads stdin, and ends

    def _answer(self, job: RunningJob) -> JobResult | JobFailed:
        context = self._spark.sparkContext
        try:
            job.check()
            context.addJobTag(job.tag)
            try:
                return self._run(job)
            finally:
                context.removeJobTag(job.tag)
        except (MetaError, PySparkException, Py4JError, OSError) as error:
            code = code_of(error, is_cancelled=job.cancelled.is_set())
            detail = "cancelled" if job.cancelled.is_set() else str(error)
            facts = error.facts if isinstance(error, Refused) else {}
            return job.failed(code, detail, {name: safe(value) for name, value in facts.items()})

    def _run(self, job: RunningJob) -> JobResult:
        match job.job:
            case MoveJob():
                return move(self._spark, job.job, job)
            case BackfillJob():
                return backfill(self._spark, job.job, job)
            case ValidateJob():
                return validate(self._spark, job.job, job)
            case CheckJob():
                return check(self._spark, job.job, job)
            case LoadJob():
                return load(self._spark, job.job, job)
            case _:
                assert_never(job.job)

    def _tell(self) -> None:
        while not self._ended.wait(TICK_S):
            for job in self._running():
                job.tell()
                # Again at each tick: the next pass may have begun after the last cancellation.
                if job.cancelled.is_set():
                    self._spark.sparkContext.cancelJobsWithTag(job.tag)

    def _running(self) -> list[RunningJob]:
        with self._jobs_lock:
            return list(self._jobs.values())


def main() -> int:
    settings = _settings()
    answers = JobAnswers(_own_stdout())
    signal.signal(signal.SIGTERM, _exit)
    stand_back()
    driver: Driver | None = None
    try:
        spark = start_session(settings)
        driver = Driver(spark, answers)
        answers.send(
            DriverReady(
                pid=os.getpid(), master=settings.master, spark=spark.version, java=java_version()
            )
        )
        driver.serve(sys.stdin.buffer)
    except ValidationError as error:
        print(f"a line that makes no sense: {error}", file=sys.stderr)
        return 2
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if driver is None:
            end_java()
        else:
            driver.end()
    return 0


def stand_back() -> None:
    """Lowers the priority of this process and of those that it starts from now on. A kernel that
    schedules sessions as groups compares these; the session is lowered if it is our own."""
    os.nice(NICENESS)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # no such kernel
            Path("/proc/self/autogroup").write_text(str(NICENESS))


def _settings() -> SessionSettings:
    parser = argparse.ArgumentParser(prog="dataplane.pipelines.driver", description=__doc__)
    parser.add_argument("--spark-master", default="local[2]")
    parser.add_argument("--spark-driver-memory", default="512m")
    parser.add_argument("--spark-driver-host", default="127.0.0.1")
    parser.add_argument("--work-dir", type=Path, required=True)
    arguments = parser.parse_args()
    spark = (arguments.spark_master, arguments.spark_driver_memory, arguments.spark_driver_host)
    return SessionSettings(*spark, arguments.work_dir.absolute())


def _own_stdout() -> int:
    """The real stdout, under a descriptor that no child inherits; 1 is stderr from now on."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def _exit(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    sys.exit(main())
