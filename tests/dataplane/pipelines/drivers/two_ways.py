"""`python -m tests.dataplane.pipelines.drivers.two_ways`: one region moved through a driver of our
own and through Spark Connect, side by side.

The same four inputs (two files of 3 MB copied, a small one and a log rewritten), by the same code:
over Connect, what a driver does with RDDs goes by `mapInArrow`; progress is not counted. Each way
is a process with a Spark of its own, `local[2]`, 512 MiB of heap; the two take turns. Time to start
is until the first Python on an executor has answered; memory is that of the client and of all that
it started, after the last job; CPU that of all of it, start and six jobs. Connect needs
grpcio-status, googleapis-common-protos and zstandard beside PySpark; else that side says so.
"""

import argparse
import asyncio
import json
import os
import pickle
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark

from dataplane.pipelines.jobs.move import move
from dataplane.pipelines.pace import PaceAddress
from dataplane.pipelines.session import SessionSettings, end_java, start_session
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv_base.clock import SystemClock
from tests.dataplane.pipelines.rig import Cluster, dead_region, move_job

WAYS = ("classic", "connect")
ROUNDS = 5
JOBS = 5
HEAP = "512m"
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
HOME = Path(pyspark.__file__).parent
PATIENCE_MS = 300_000
PAUSE_MS = 50
CLOCK = SystemClock()


class Uncounted:
    """Neither way counts progress here: Connect has no accumulators."""

    def begin(self, total: int) -> "Uncounted":
        return self

    def paced(self, rows: int) -> AbstractContextManager[PaceAddress]:
        raise AssertionError("a move counts bytes")

    def check(self) -> None:
        """Nobody cancels."""

    def add(self, term: int) -> None:
        """Goes with the tasks."""


@dataclass(frozen=True)
class Pieces:
    """As much of an RDD as a move asks for: tasks on executors, over Connect."""

    session: Any
    work: Sequence[Any]
    task: Callable[[Any], Any] | None = None

    def map(self, task: Callable[[Any], Any]) -> "Pieces":
        return Pieces(self.session, self.work, task)

    def collect(self) -> list[Any]:
        work, task = list(self.work), self.task
        assert task is not None

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                done = [pickle.dumps(task(work[n])) for n in batch.column(0).to_pylist()]
                yield pa.RecordBatch.from_pydict({"done": done})

        many = max(len(work), 1)
        rows = self.session.range(0, many, 1, many).mapInArrow(run, "done binary").collect()
        return [pickle.loads(row[0]) for row in rows]


@dataclass(frozen=True)
class OverConnect:
    """A remote session in the place of one of our own."""

    session: Any

    @property
    def sparkContext(self) -> "OverConnect":  # noqa: N802 - Spark's name
        return self

    def parallelize(self, work: Sequence[Any], parts: int) -> Pieces:
        return Pieces(self.session, work)

    @property
    def defaultParallelism(self) -> int:  # noqa: N802 - Spark's name
        return os.cpu_count() or 1


@contextmanager
def classic(folder: Path) -> Iterator[Any]:
    yield start_session(SessionSettings("local[2]", HEAP, "127.0.0.1", folder / "spark"))
    end_java()


@contextmanager
def connect(folder: Path) -> Iterator[Any]:
    """Its server is started first, as whoever runs one would."""
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"  # functions of PySpark ask for it
    from pyspark.sql.connect.session import SparkSession

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": folder / "local",
        "spark.sql.warehouse.dir": folder / "warehouse",
    }
    given = [word for item in settings.items() for word in ("--conf", f"{item[0]}={item[1]}")]
    command = [str(HOME / "bin/spark-submit"), "--master", "local[2]", "--driver-memory", HEAP]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, *given, "--class", SERVER, "spark-internal"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until_ms = CLOCK.mono_ms() + PATIENCE_MS
        while not accepts(port):
            assert server.poll() is None, folder / "server.log"
            assert CLOCK.mono_ms() < until_ms, folder / "server.log"
            asyncio.run(CLOCK.sleep_ms(PAUSE_MS))
        session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        try:
            warm_up = session.range(0, 2, 1, 2).mapInArrow(lambda batches: batches, "id bigint")
            assert len(warm_up.collect()) == 2
            yield OverConnect(session)
        finally:
            session.stop()
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def resident_bytes() -> int:
    """Returns the resident bytes of this process and of all that it has started."""
    parents, bytes_of = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "status").read_text()
        except OSError:
            continue  # it has ended meanwhile
        facts = dict(re.findall(r"^(PPid|VmRSS):\s+(\d+)", text, re.MULTILINE))
        parents[int(folder.name)] = int(facts["PPid"])
        bytes_of[int(folder.name)] = int(facts.get("VmRSS", 0)) << 10
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(bytes_of[pid] for pid in ours)


def cpu_s() -> float:
    """Returns the processor time, in s, of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    used = [resource.getrusage(one) for one in whose]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure(way: str, folder: Path) -> dict[str, Any]:
    cluster = Cluster(folder)
    dead_region(cluster)
    region = cluster.take_over()
    began_ms = CLOCK.mono_ms()
    with {"classic": classic, "connect": connect}[way](folder) as session:
        start_ms, jobs_ms = CLOCK.mono_ms() - began_ms, []
        for number in range(JOBS + 1):  # the first one warms
            began_ms = CLOCK.mono_ms()
            result = move(session, move_job(region, f"a{number}"), Uncounted())
            jobs_ms.append(CLOCK.mono_ms() - began_ms)
        rss_bytes = resident_bytes()
    assert region.file_ingest.adopt("p1", f"attempts/a{JOBS}", result.files)
    return {
        "start_s": start_ms / 1000,
        "job_s": statistics.median(jobs_ms[1:]) / 1000,
        "rss_mib": rss_bytes >> 20,
        "cpu_s": cpu_s(),
        "rows": result.rows_out,
    }


def asked(way: str) -> dict[str, Any] | str:
    """Measured in a process of its own; or why it cannot be."""
    toolchain = read_toolchain(checkout())
    chosen = toolchain.environment(os.environ["PATH"]) if toolchain else {}
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run(
            (
                sys.executable,
                "-m",
                "tests.dataplane.pipelines.drivers.two_ways",
                "--way",
                way,
                "--folder",
                folder,
            ),
            env={**os.environ, **chosen, "PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
    if child.returncode:
        return (child.stderr.strip().splitlines() or ["it ended"])[-1]
    found: dict[str, Any] = json.loads(child.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure(given.way, given.folder)))
        return 0
    print(f"Spark {pyspark.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(given.rounds):
        for way in WAYS:
            one = asked(way)
            if isinstance(one, str):
                print(f"{way}: not measured: {one}")
            else:
                found[way].append(one)
    for way, runs in found.items():
        if runs:
            median = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
            print(
                f"{way}: start {median['start_s']:.1f} s, a job {median['job_s']:.2f} s, "
                f"{median['rss_mib']:.0f} MiB resident, {median['cpu_s']:.1f} s of CPU in all; "
                f"medians of {len(runs)}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
