"""A region that died and its successor, which reads the dead root until a job has moved it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.engine.region import Region
from dataplane.region.format.columns import RegionSpec
from dataplane.region.place import RegionLimits
from metasrv.adapters.spark_jobs import SparkJobs
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from tests.dataplane.region.rig import REGION_ID, SPEC, Row, order, place, write

BIG_ROWS = 8000  # of `big_rows`: a file above plan.SMALL_FILE_BYTES


@dataclass
class Cluster:
    """Two roots on a local disk."""

    folder: Path
    statements: int = 0

    @property
    def old_root(self) -> str:
        return str(self.folder / "old" / str(REGION_ID))

    @property
    def new_root(self) -> str:
        return str(self.folder / "new" / str(REGION_ID))

    def create(self, spec: RegionSpec = SPEC, memtable_bytes: int = 32 << 20) -> Region:
        limits = RegionLimits(memtable_bytes)
        return Region.create(place(LocalDisk(), self.old_root, limits=limits), spec, epoch=1)

    def write(self, region: Region, rows: dict[bytes, Row | None]) -> int:
        """The version of the rows."""
        self.statements += 1
        return write(region, f"s{self.statements}", rows).version

    def take_over(self, epoch: int = 2) -> Region:
        return Region.open(place(LocalDisk(), self.new_root), order(epoch, self.old_root))


@dataclass
class Seen:
    """The progress that a step is told."""

    reports: list[tuple[int, int, str]] = field(default_factory=list)
    then: Callable[[int, int], object] = lambda done, total: None

    def __call__(self, done: int, total: int, unit: str) -> None:
        self.reports.append((done, total, unit))
        self.then(done, total)


def big_rows(
    start: int, seed: int = 1, rows: int = BIG_ROWS, row_bytes: int = 400
) -> dict[bytes, Row | None]:
    noise = random.Random(seed)
    return {
        b"%08d" % number: (number, noise.randbytes(row_bytes // 2).hex())
        for number in range(start, start + rows)
    }


def dead_region(cluster: Cluster) -> None:
    """Two big files, a small one, and a log; each overwrites and deletes rows of the one before."""
    region = cluster.create()
    cluster.write(region, big_rows(0))
    region.maintenance.flush()
    cluster.write(region, big_rows(BIG_ROWS // 2, seed=2))
    region.maintenance.flush()
    cluster.write(region, {b"%08d" % number: None for number in range(0, 600, 2)})
    region.maintenance.flush()
    cluster.write(region, {b"%08d" % number: (number, "logged") for number in range(0, 400, 4)})
    cluster.write(region, {b"%08d" % number: None for number in range(0, 100, 4)})
    region.close()


def move_job(region: Region, attempt: str = "one") -> MoveJob:
    return MoveJob(
        job_id=f"job-{attempt}",
        procedure="p1",
        attempt=f"attempts/{attempt}",
        borrowed=region.borrowed(),
    )


async def move_and_adopt(jobs: SparkJobs, region: Region, attempt: str = "one") -> MoveResult:
    """Also checks that the region is the same before and after."""
    before = region.reader.digest()
    job = move_job(region, attempt)
    result = await jobs.move(job, progress=Seen())
    assert region.file_ingest.adopt(job.procedure, job.attempt, result.files)
    assert region.manifest.borrowed_roots == ()
    assert region.reader.digest() == before
    return result
