"""The driver process by itself: what it prints, and that it goes with whoever started it.

(That none is left of a driver that is killed: test_move.py, where one is killed anyway.)
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metasrv_base.wire.node.jobs import ANSWER, DriverReady, JobFailed
from tests.dataplane.pipelines.conftest import spark_environment
from tests.metasrv.adapters.jobs import job
from tests.processes import session_is_running

pytestmark = pytest.mark.spark

Driver = subprocess.Popen[bytes]
WAIT_S_MAX = 240


@contextmanager
def running(module: str, work_dir: Path) -> Iterator[Driver]:
    command = [sys.executable, "-m", module, "--work-dir", str(work_dir)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=spark_environment(),
        start_new_session=True,
    ) as process:
        yield process
        if session_is_running(process.pid):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Driver]:
    with running("dataplane.pipelines.driver", tmp_path) as process:
        yield process


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
    assert not session_is_running(driver.pid)


FAILURES = {
    "wrong": "job-failed",
    "killed": "not-ready",
    "full": "not-ready",
    "hungry": "not-ready",
    "java hungry": "not-ready",
    "java gone": "not-ready",
}


def test_given_what_a_job_needs_is_away_then_it_did_not_fail_and_a_driver_without_java_ends(
    tmp_path: Path,
) -> None:
    with running("tests.dataplane.pipelines.drivers.failing_driver", tmp_path) as driver:
        assert driver.stdin
        assert driver.stdout
        driver.stdout.readline()
        codes = {}
        for way in FAILURES:
            driver.stdin.write(job(way).model_dump_json().encode() + b"\n")
            driver.stdin.flush()
            answer = ANSWER.validate_json(driver.stdout.readline())
            assert isinstance(answer, JobFailed)
            codes[way] = answer.code
        code = driver.wait(WAIT_S_MAX)

    assert codes == FAILURES
    assert code == 0, "whoever started it starts another"
