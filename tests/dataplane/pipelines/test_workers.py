"""The process from which workers fork."""

import subprocess
import sys

import pytest

SAID = """
import gc, os, sys
from pyspark import daemon
def say():
    loaded = {"pyarrow", "dataplane.pipelines.jobs.move", "pyspark.worker"} <= set(sys.modules)
    print(len(os.listdir("/proc/self/task")), loaded, gc.get_freeze_count() > 50_000)
daemon.manager = say
import runpy
runpy.run_module("dataplane.pipelines.workers", run_name="__main__")
"""


@pytest.mark.slow
def test_given_the_daemon_when_it_is_about_to_fork_then_all_is_imported_by_one_thread() -> None:
    done = subprocess.run([sys.executable, "-c", SAID], stdout=subprocess.PIPE, check=True)

    assert done.stdout.split() == [b"1", b"True", b"True"]
