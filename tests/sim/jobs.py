"""The Jobs port without Spark: the executor's own code, a piece at a time, by one task.

It dies with its server, may fail between any two pieces, and leaves behind what it has written.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import count

import pyarrow as pa

from base.errors import Corrupt, Unavailable
from base.wire.jobs import MoveJob, MoveResult
from base.wire.orders import DataFile
from dataplane.pipelines.executor import Output, copy_file, read_input, write_range
from dataplane.pipelines.plan import Family, MovePlan, plan_move
from dataplane.region.columns import KEY, VERSION
from dataplane.region.kept_versions import KeptVersions
from procedures.ports import Progress
from tests.sim.disks import Disks, ProcessDisk
from tests.sim.loop import SimLoop
from tests.sim.weather import Weather


@dataclass
class SimJobs:
    disks: Disks
    loop: SimLoop
    node: str
    weather: Weather
    _runs: "count[int]" = field(default_factory=lambda: count(1))

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        disk = ProcessDisk(self.disks, self.loop, self.node)
        plan, run = plan_move(job.borrowed), f"{self.node}-{next(self._runs)}".replace("#", "-")

        def output(task: str) -> Output:
            return Output(disk, job.borrowed.root, f"{job.attempt}/{run}-{task}.parquet")

        files: list[DataFile] = []
        for number, source in enumerate(plan.copies):
            await self._trouble(job)
            files.append(await asyncio.to_thread(copy_file, source, output(f"copy-{number}")))
            progress(number + 1, len(plan.copies) + 1, "inputs")
        copied = sum(file.rows for file in files)
        read = 0
        for family in plan.families:
            await self._trouble(job)
            target = Target(disk, plan, output(f"rows-{family.number}"))
            read += await asyncio.to_thread(_rewrite, target, family, files)
        await self._trouble(job)
        self.weather.sometimes["a job that moved a region"] += 1
        return MoveResult(
            job_id=job.job_id,
            files=files,
            rows_in=copied + read,
            rows_out=sum(file.rows for file in files),
            bytes_in=plan.bytes,
            bytes_out=sum(file.bytes for file in files),
            copied_files=len(plan.copies),
            rewritten_segments=len(job.borrowed.segments),
        )

    async def _trouble(self, job: MoveJob) -> None:
        if self.weather.random.random() < self.weather.job_fails:
            self.weather.sometimes["a job that died half way"] += 1
            raise Unavailable(what="job", name=job.job_id)


@dataclass(frozen=True)
class Target:
    disk: ProcessDisk
    plan: MovePlan
    output: Output


def _rewrite(target: Target, family: Family, files: list[DataFile]) -> int:
    """Adds the file, if any row is to be kept; how many were read."""
    inputs = target.plan.rewrites
    try:
        found = [table for one in inputs for table in read_input(target.disk, one, family)]
    except Corrupt as error:
        raise Unavailable("region-lost", detail=str(error)) from error
    if not sum(table.num_rows for table in found):
        return 0
    rows = pa.concat_tables(found).sort_by([(KEY, "ascending"), (VERSION, "descending")])
    written = write_range(iter([rows]), target.output, family, KeptVersions(target.plan.marks))
    if written.file is not None:
        files.append(written.file)
    return int(rows.num_rows)
