"""A standalone Spark cluster on this machine: a master and workers, as the wheel can start them."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.metasrv.playground.waiting import until

LOOPBACK = "127.0.0.1"
START_S_MAX = 240.0
END_S_MAX = 120.0
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
MASTER_URL = re.compile(rf"Starting Spark master at (spark://{re.escape(LOOPBACK)}:\d+)")
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
REGISTERED = "Successfully registered with master"


@dataclass(frozen=True)
class Standalone:
    master: str
    """spark://host:port"""
    folders: tuple[Path, ...]
    """A folder of each worker: in it one for each application, and in that one for each
    executor."""
    workers: tuple[int, ...]
    """Their pids; each leads a process group with its executors."""

    def executors(self) -> list[int]:
        """Returns how many executors each worker has started."""
        return [len(list(folder.glob("app-*/*/stderr"))) for folder in self.folders]

    def kill_worker(self, number: int) -> None:
        os.killpg(self.workers[number], signal.SIGKILL)


@contextmanager
def standalone(folder: Path, env: Mapping[str, str], *, workers: int) -> Iterator[Standalone]:
    """One core and 1 GiB for each worker."""
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_running(MASTER, ("--port", "0"), env, log))
        master = until(lambda: MASTER_URL.search(log.read_text()), START_S_MAX)
        assert master
        folders = tuple(folder / f"worker-{number}" for number in range(workers))
        logs = [place.with_suffix(".log") for place in folders]
        pids = []
        for place, log in zip(folders, logs, strict=True):
            flags = ("--cores", "1", "--memory", "1g", "--work-dir", str(place), master[1])
            pids.append(stack.enter_context(_running(WORKER, flags, env, log)))
        until(lambda: all(REGISTERED in log.read_text() for log in logs), START_S_MAX)
        yield Standalone(master[1], folders, tuple(pids))


@contextmanager
def _running(
    program: str, flags: tuple[str, ...], env: Mapping[str, str], log: Path
) -> Iterator[int]:
    """Its pid. Everything that it has started is gone on return."""
    argv = (str(SPARK_CLASS), program)
    own = ("--host", LOOPBACK, "--webui-port", "0", *flags)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            (*argv, *own),
            env={**env, "SPARK_LOCAL_IP": LOOPBACK},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(END_S_MAX)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # executors are of its group
            process.wait()
