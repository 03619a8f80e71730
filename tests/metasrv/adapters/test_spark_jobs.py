"""The Jobs adapter against a driver that misbehaves on request."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from metasrv.adapters.spark_jobs import SparkJobs, SparkSettings
from metasrv.host.toolchain import checkout
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.inputs import Snapshot
from metasrv_base.wire.node.jobs import BackfillJob, JobIndex
from tests.dataplane.pipelines.rig import Seen
from tests.fakes.clock import FakeClock
from tests.metasrv.adapters.jobs import job

pytestmark = pytest.mark.process

NO_ROWS = Snapshot(region_id="1", epoch=2, root="/new", columns=[], mark="m", version=1, files=[])


@asynccontextmanager
async def running(settings: SparkSettings, start: str = "ready") -> AsyncIterator[SparkJobs]:
    command = (sys.executable, "-m", "tests.dataplane.pipelines.drivers.fake_driver", start)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(checkout())}
    jobs = SparkJobs(command, env, FakeClock(), settings)
    async with asyncio.timeout(240), asyncio.TaskGroup() as tasks:
        tasks.create_task(jobs.run())
        yield jobs
        await jobs.close()


@pytest.fixture
def settings(tmp_path: Path) -> SparkSettings:
    return SparkSettings(tmp_path / "spark", cancel_ms=5_000)


async def test_given_jobs_when_they_come_together_then_one_driver_answers_each_its_own(
    settings: SparkSettings,
) -> None:
    seen = Seen()

    async with running(settings) as jobs:
        assert jobs.driver_pid is None, "it starts with the first job"
        moves = (jobs.move(job("done", f"j{n}"), progress=seen) for n in range(8))
        results = await asyncio.gather(*moves)

    assert [result.job_id for result in results] == [f"j{n}" for n in range(8)]
    assert len({result.rows_in for result in results}) == 1, "the fake driver's pid"
    assert seen.reports == [(1, 2, "bytes")] * 8


@pytest.mark.parametrize("does", ["die", "nonsense"])
async def test_given_a_driver_that_breaks_when_asked_again_then_another_one_answers(
    settings: SparkSettings, does: str
) -> None:
    async with running(settings) as jobs:
        before = await jobs.move(job("done"), progress=Seen())
        with pytest.raises(Unavailable):
            await jobs.move(job(does), progress=Seen())
        after = await jobs.move(job("done"), progress=Seen())

    assert before.rows_in != after.rows_in
    assert (jobs.starts, jobs.is_driver_ready) == (2, False)


@pytest.mark.parametrize(
    ("start", "start_ms", "reason"),
    [("broken", 60_000, "ended before"), ("silent", 1_000, "not ready within 1 s")],
)
async def test_given_a_driver_that_does_not_start_when_a_job_comes_then_it_is_unavailable(
    settings: SparkSettings, start: str, start_ms: int, reason: str
) -> None:
    async with running(replace(settings, start_ms=start_ms), start) as jobs:
        for _ in range(2):
            with pytest.raises(Unavailable) as refused:
                await jobs.move(job("done"), progress=Seen())
            assert reason in str(refused.value.facts["reason"])


@pytest.mark.parametrize(("does", "is_kept"), [("wait", True), ("deaf", False)])
async def test_given_a_cancelled_job_when_the_driver_does_not_obey_then_it_is_killed(
    settings: SparkSettings, does: str, is_kept: bool
) -> None:
    async with running(settings) as jobs:
        before = await jobs.move(job("done"), progress=Seen())
        async with asyncio.TaskGroup() as tasks:
            seen = Seen(then=lambda done, total: step.cancel())
            step = tasks.create_task(jobs.move(job(does), progress=seen))
        if not is_kept:
            with suppress(Unavailable):  # the end of the killed driver may not be noticed yet
                await jobs.move(job("done"), progress=Seen())
        after = await jobs.move(job("done"), progress=Seen())

    assert step.cancelled()
    assert (before.rows_in == after.rows_in) == is_kept


async def test_given_a_job_without_end_when_its_time_is_over_then_it_is_cancelled(
    settings: SparkSettings,
) -> None:
    async with running(replace(settings, job_ms=1_000)) as jobs:
        with pytest.raises(Unavailable, match="too long"):
            await jobs.move(job("wait"), progress=Seen())


async def test_given_a_full_queue_when_one_more_comes_then_it_is_told_to_come_again(
    settings: SparkSettings,
) -> None:
    async with running(replace(settings, jobs_max=1)) as jobs, asyncio.TaskGroup() as tasks:
        begun = asyncio.Event()
        seen = Seen(then=lambda done, total: begun.set())
        step = tasks.create_task(jobs.move(job("wait"), progress=seen))
        await begun.wait()

        with pytest.raises(Unavailable, match="full"):
            await jobs.move(job("done", "other"), progress=Seen())
        step.cancel()


async def test_given_a_running_job_when_closed_then_it_is_unavailable_and_so_is_the_next(
    settings: SparkSettings,
) -> None:
    async with running(settings) as jobs:
        begun = asyncio.Event()
        seen = Seen(then=lambda done, total: begun.set())
        all_moves = asyncio.gather(jobs.move(job("wait"), progress=seen), return_exceptions=True)
        await begun.wait()

        await jobs.close()

        (answer,) = await all_moves
        assert isinstance(answer, Unavailable)
        with pytest.raises(Unavailable, match="closed"):
            await jobs.move(job("done"), progress=Seen())


async def test_given_a_job_that_runs_when_throttled_then_the_driver_is_told_of_that_one(
    settings: SparkSettings,
) -> None:
    slow = BackfillJob(
        job_id="slow",
        procedure="wait",
        attempt="attempts/a",
        snapshot=NO_ROWS,
        index=JobIndex(id=3, columns=[1]),
    )
    begun, told = asyncio.Event(), asyncio.Event()
    seen = Seen(then=lambda done, total: (told if total == 700 else begun).set())

    async with running(settings) as jobs, asyncio.TaskGroup() as tasks:
        step = tasks.create_task(jobs.backfill(slow, progress=seen))
        await begun.wait()
        await jobs.throttle("another", 5)
        await jobs.throttle("slow", 700)
        await told.wait()
        step.cancel()

    assert seen.reports == [(1, 2, "bytes"), (700, 700, "rows/s")]
    assert step.cancelled()
