"""The same driver on a cluster: a standalone master and two workers, each a process of its own."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from dataplane.region.engine.region import Region
from metasrv.adapters.spark_jobs import SparkJobs, SparkSettings, driver_command
from metasrv_base.clock import SystemClock
from tests.dataplane.pipelines.conftest import spark_environment
from tests.dataplane.pipelines.rig import Cluster, Seen, dead_region, move_job
from tests.dataplane.pipelines.standalone import Standalone, standalone
from tests.dataplane.region.rig import contents, order

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.timeout(600)]


async def test_given_two_workers_when_one_is_killed_in_a_job_then_the_region_moves_and_is_the_same(
    tmp_path: Path, cluster: Cluster
) -> None:
    dead_region(cluster)
    region = cluster.take_over()
    before = contents(region)
    job = move_job(region)

    with standalone(tmp_path, spark_environment(), workers=2) as spark:
        jobs, killed = jobs_on(spark, tmp_path / "driver"), list[list[int]]()

        def kill_half_way(done: int, total: int) -> None:
            if not killed and 0 < done < total:
                killed.append(spark.executors())
                spark.kill_worker(0)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(jobs.run())
            result = await jobs.move(job, progress=Seen(then=kill_half_way))
            await jobs.close()
    assert region.file_ingest.adopt(job.procedure, job.attempt, result.files)
    region.close()
    shutil.rmtree(cluster.old_root)

    assert killed == [[1, 1]], "both workers had an executor, and one died"
    assert contents(Region.open(region.place, order(2))) == before
    left = os.listdir(f"{cluster.new_root}/{job.attempt}")
    assert sorted(left) == sorted(Path(file.name).name for file in result.files)


def jobs_on(spark: Standalone, work_dir: Path) -> SparkJobs:
    settings = SparkSettings(work_dir, master=spark.master)
    return SparkJobs(driver_command(settings), spark_environment(), SystemClock(), settings)
