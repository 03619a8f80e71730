"""Leaders that are needed while Spark brings over the rows of another region of their table."""

import asyncio

from keys.store.kv import Compare
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from procedures.ports import Progress
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.plane import FakeJobs, Plane
from tests.procedures.harness.copies.copied_tables import with_copied_table_and_dead_node
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import MOVED
from tests.procedures.harness.tables import region_ids
from tests.procedures.kinds.copies.copy_lives import regions
from tests.procedures.kinds.failover.runs import start
from tests.procedures.kinds.runs import begun
from tests.sim.loop import SimLoop, run


class HeldMoves(FakeJobs):
    """Jobs that do not begin before they may."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(plane)
        self.may_begin = asyncio.Event()
        self.waiting = 0

    async def move(self, job: MoveJob, *, progress: Progress) -> MoveResult:
        self.waiting += 1
        try:
            await self.may_begin.wait()
        finally:
            self.waiting -= 1
        return await super().move(job, progress=progress)


async def with_held_moves(cluster: Cluster, fence: Compare) -> None:
    """Copies lead the first two regions of table t next; the third is moved."""
    cluster.jobs = HeldMoves(cluster.plane)
    await with_copied_table_and_dead_node(cluster, fence)


def test_given_a_job_that_lasts_when_another_leader_starts_again_then_its_region_opens() -> None:
    state = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 3)})

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_held_moves, {})
        jobs = cluster.jobs
        assert isinstance(jobs, HeldMoves)
        await start(cluster, "failover_table", state)
        await cluster.clock.sleep_ms(60_000)
        assert jobs.waiting == 1
        assert [region["epoch"] for region in regions(cluster)] == [2, 2, 2]

        promoted = cluster.plane.nodes["dn-2"]
        promoted.die()
        promoted.alive = True
        await cluster.clock.sleep_ms(30_000)

        first = regions(cluster)[0]
        assert (first["leader"], first["epoch"], first["state"]) == ("dn-2", 3, "open")
        assert jobs.waiting == 1, "the rows of the third are brought over anew"
        jobs.may_begin.set()
        assert await cluster.quiet()
        assert [region["state"] for region in regions(cluster)] == ["open"] * 3
        assert cluster.plane.violations == []

    run(main, 1)
