"""One warm driver for all tests of a session, noting what its own Python touches."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from metasrv.adapters.spark_jobs import SparkJobs, SparkSettings, driver_command
from metasrv.host.toolchain import checkout, read_toolchain
from metasrv_base.clock import SystemClock
from tests.dataplane.pipelines.rig import Cluster


def spark_environment() -> dict[str, str]:
    toolchain = read_toolchain(checkout())
    assert toolchain is not None, "the bootstrap has not run: make setup"
    own = {"PYTHONPATH": str(checkout()), "HOME": os.environ.get("HOME", "/")}
    return own | toolchain.environment(os.environ["PATH"])


@dataclass(frozen=True)
class Warm:
    jobs: SparkJobs
    notes: Path
    """Paths that the driver's own Python opened, one a line."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def spark(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Warm]:
    work_dir = tmp_path_factory.mktemp("spark")
    notes, open_folder = work_dir / "notes", str(tmp_path_factory.getbasetemp())
    settings = SparkSettings(work_dir, is_warm=True, import_folders=(open_folder,))
    audited = (sys.executable, "-m", "tests.dataplane.pipelines.drivers.audited_driver", str(notes))
    command = (*audited, *driver_command(settings)[3:])
    jobs = SparkJobs(command, spark_environment(), SystemClock(), settings)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(jobs.run())
        yield Warm(jobs, notes)
        await jobs.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)
