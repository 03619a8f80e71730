"""Leaders that are needed once all regions have been opened: while Spark brings over the rows of
another region of their table, and while the old folders are deleted."""

import asyncio

from keys.model.records import ProcedureHistory
from keys.store.kv import Compare
from metasrv_base.errors import Unavailable
from metasrv_base.wire.node.jobs import MoveJob, MoveResult
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.ports import Progress
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import FakeJobs, Plane
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
    with_copied_table_and_dead_node,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import MOVED
from tests.procedures.harness.tables import put_schema, region_ids, reserve_ids
from tests.procedures.kinds.copies.copy_lives import code_of, regions, roles
from tests.procedures.kinds.failover.runs import FIRST, ROOT, start
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


def test_given_a_source_that_leads_again_when_another_region_is_rerouted_then_that_one_opens() -> (
    None
):
    """The leases of the source on what it leads now are renewed, and nobody waits for their end."""
    state = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 3)})

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_held_moves, {})
        jobs = cluster.jobs
        assert isinstance(jobs, HeldMoves)
        await start(cluster, "failover_table", state)
        await cluster.clock.sleep_ms(60_000)
        first, second, third = (cluster.plane.nodes[f"dn-{number}"] for number in (1, 2, 3))
        first.alive, second.disk_free_bytes = True, 0
        await cluster.clock.sleep_ms(10_000)
        third.die()
        await cluster.clock.sleep_ms(60_000)
        assert [region["leader"] for region in regions(cluster)] == ["dn-2", "dn-1", "dn-1"]

        second.die()
        second.alive = True
        await cluster.clock.sleep_ms(60_000)

        assert [region["state"] for region in regions(cluster)] == ["open"] * 3
        jobs.may_begin.set()
        assert await cluster.quiet()
        assert cluster.plane.violations == []

    run(main, 1)


FAIL_OVER = FailoverTable(
    table_id=TABLE, name="t", source="dn-1", region_ids=(FIRST,), reason="silent"
)


async def with_a_leader_that_was_alone(cluster: Cluster, fence: Compare) -> None:
    """dn-1, which was alone in the set of a region, is dead. dn-3 takes it over, since dn-2, where
    a learner is, is full. No node discards anything."""
    cluster.plane.add("dn-1", "dn-2", "dn-3")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", LEARNER),),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 2), route)
    cluster.plane.nodes["dn-1"].die()
    cluster.plane.nodes["dn-2"].disk_free_bytes = 0
    for node in cluster.plane.nodes.values():
        node.refuses["discard"] = Unavailable("not-ready")


async def discarding(cluster: Cluster) -> tuple[str, FakeNode]:
    """The procedure in its last step, and the leader by then."""
    await cluster.detected()
    procedure = await start(cluster, "failover_table", FAIL_OVER)
    await cluster.clock.sleep_ms(60_000)
    assert dict(cluster.leader.manager.living())[procedure].held.record.step == "discard"
    for node in cluster.plane.nodes.values():
        node.refuses.clear()
    return procedure, cluster.plane.nodes["dn-3"]


async def ended(cluster: Cluster, procedure: str) -> ProcedureHistory:
    assert await cluster.quiet(), f"it never ends: {cluster.living()}"
    history = await cluster.leader.manager.find(procedure)
    assert isinstance(history, ProcedureHistory)
    assert cluster.plane.violations == []
    return history


def left_by(history: ProcedureHistory) -> object:
    assert code_of(history) is None
    assert history.result is not None
    return history.result["left_behind"]


def loses_its_files(cluster: Cluster, leader: FakeNode) -> None:
    leader.lost[FIRST] = leader.serving.pop(FIRST)
    del cluster.plane.storage.folders[leader.lost[FIRST].root]


def test_given_a_leader_that_starts_again_when_discarding_then_it_leads_again_and_discards() -> (
    None
):
    """It opens nothing at that epoch any more, and no other failover gets the region meanwhile."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_leader_that_was_alone, {})
        procedure, leader = await discarding(cluster)

        leader.die()
        leader.alive = True

        assert left_by(await ended(cluster, procedure)) == []
        (region,) = regions(cluster)
        assert (region["leader"], region["state"], region["epoch"]) == ("dn-3", "open", 3)
        assert ROOT not in cluster.plane.storage.folders
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())

    run(main, 1)


def test_given_a_leader_that_loses_its_files_when_discarding_then_a_copy_of_the_set_leads() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_leader_that_was_alone, {})
        cluster.plane.joining.add(FIRST)
        procedure, leader = await discarding(cluster)
        assert roles(cluster, 0) == [("dn-2", IN_SYNC)]

        loses_its_files(cluster, leader)

        assert left_by(await ended(cluster, procedure)) == []
        (region,) = regions(cluster)
        assert (region["leader"], region["state"], region["epoch"]) == ("dn-2", "open", 3)
        assert ROOT not in cluster.plane.storage.folders
        assert f"{FIRST}/log" in (cluster.plane.rows(FIRST) or ())

    run(main, 1)


def test_given_a_lost_leader_without_successor_when_discarding_then_the_old_folder_stays() -> None:
    """It may be the last that has the rows."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_leader_that_was_alone, {})
        procedure, leader = await discarding(cluster)

        loses_its_files(cluster, leader)

        assert left_by(await ended(cluster, procedure)) == [ROOT]
        assert ROOT in cluster.plane.storage.folders

    run(main, 1)
