"""The one SparkSession of a driver process: bound to this machine, small, and quiet."""

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

# Less to compile at the start and fewer threads: what takes long here is Python and Arrow.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
END_S_MAX = 10  # for Java to delete its folders; then it is killed


@dataclass(frozen=True, slots=True)
class SessionSettings:
    master: str
    driver_memory: str
    host: str
    """The host at which executors reach the driver."""
    work_dir: Path
    """Folder for everything that Spark writes beside the output of jobs."""


def spark_conf(settings: SessionSettings) -> dict[str, bool | float | int | str | None]:
    work = settings.work_dir
    return {
        "spark.app.name": "metasrv-pipelines",
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.host": settings.host,
        "spark.driver.bindAddress": settings.host,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={work / 'tmp'} {JAVA_OPTIONS}",
        # Receipts alone come back to the driver; rows would break this at once.
        "spark.driver.maxResultSize": "32m",
        "spark.local.dir": str(work / "local"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.speculation": "false",
        "spark.locality.wait": "0",  # no task is nearer to its files than another
        "spark.python.daemon.module": "dataplane.pipelines.workers",
    }


def start_session(settings: SessionSettings) -> SparkSession:
    """Takes seconds. On return executors have run Python, so the first job finds all of it warm.

    JAVA_HOME, PATH and PYSPARK_PYTHON are the caller's environment.
    """
    for folder in ("tmp", "local", "warehouse"):
        shutil.rmtree(settings.work_dir / folder, ignore_errors=True)  # of a driver that was killed
        (settings.work_dir / folder).mkdir(parents=True)
    tempfile.tempdir = str(settings.work_dir / "tmp")
    os.environ.update(TMPDIR=tempfile.tempdir, SPARK_LOCAL_IP=settings.host)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session: SparkSession = SparkSession.builder.config(map=spark_conf(settings)).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    context = session.sparkContext
    tasks = context.defaultParallelism
    assert context.parallelize(range(tasks), tasks).map(abs).count() == tasks
    return session


def java_version() -> str:
    java = SparkContext._jvm
    assert java is not None, "the session has been started"
    return str(java.System.getProperty("java.version"))


def is_over(session: SparkSession) -> bool:
    """Whether its Java has ended, or has stopped it: no job will run in it any more."""
    java: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if java is not None and java.poll() is not None:
        return True
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def end_java() -> None:
    """No JVM is left on return; calls into it fail from now on."""
    gateway = SparkContext._gateway
    java: Popen[bytes] | None = getattr(gateway, "proc", None)
    if java is None:
        return
    accumulators = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if accumulators is not None:
        accumulators.shutdown()  # it would take the end of Java for an error, and say so
    java.terminate()
    with suppress(TimeoutExpired):
        java.wait(END_S_MAX)
    java.kill()
    java.wait()
