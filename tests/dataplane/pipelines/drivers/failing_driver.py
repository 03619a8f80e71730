"""The driver as it is, but a move fails in the way that its procedure is named after.

`python -m tests.dataplane.pipelines.drivers.failing_driver [driver's arguments]`.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from dataplane.pipelines import driver
from dataplane.pipelines.tasks import Watch, on_executors
from metasrv_base.wire.node.jobs import MoveJob


def killed(_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def full(_: Any) -> None:
    raise OSError(28, "No space left on device")


def hungry(_: Any) -> None:
    raise MemoryError


def wrong(_: Any) -> None:
    raise KeyError("x")


def java_hungry() -> None:
    java = SparkContext._jvm
    assert java is not None
    java.java.nio.ByteBuffer.allocate(2_000_000_000)


def java_gone() -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.proc.kill()
    gateway.proc.wait()


IN_A_TASK: Mapping[str, Callable[[Any], None]] = {
    "killed": killed,
    "full": full,
    "hungry": hungry,
    "wrong": wrong,
}
IN_JAVA: Mapping[str, Callable[[], None]] = {"java hungry": java_hungry, "java gone": java_gone}


def fail(spark: SparkSession, job: MoveJob, _: Watch) -> None:
    way = job.procedure
    if way in IN_JAVA:
        IN_JAVA[way]()
    on_executors(spark, IN_A_TASK.get(way, wrong), [1])


if __name__ == "__main__":
    vars(driver)["move"] = fail
    sys.exit(driver.main())
