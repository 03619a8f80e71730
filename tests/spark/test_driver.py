"""The driver process by itself: what it prints, and that it goes with whoever started it.

(That none is left of a driver that is killed: test_move.py, where one is killed anyway.)
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.wire.jobs import ANSWER, DriverReady
from tests.processes import group_is_running
from tests.spark.conftest import spark_environment

pytestmark = pytest.mark.spark

Driver = subprocess.Popen[bytes]
WAIT_S_MAX = 60


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    command = [sys.executable, "-m", "dataplane.pipelines.driver", "--work-dir", str(tmp_path)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=spark_environment(),
        start_new_session=True,
    ) as process:
        yield process
        if group_is_running(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


def test_given_a_driver_when_its_parent_is_gone_then_no_jvm_is_left(driver: Driver) -> None:
    assert driver.stdin
    assert driver.stdout
    ready = ANSWER.validate_json(driver.stdout.readline())

    driver.stdin.close()
    rest = driver.stdout.read()
    code = driver.wait(WAIT_S_MAX)

    assert isinstance(ready, DriverReady)
    assert ready.pid == driver.pid
    assert (code, rest) == (0, b""), "answers alone reach stdout"
    assert not group_is_running(driver.pid)
