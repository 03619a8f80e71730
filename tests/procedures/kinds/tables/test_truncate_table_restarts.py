"""A table is truncated while one of its leaders starts again, or loses its files."""

from collections.abc import Callable

import pytest

from keys.model.records import ProcedureHistory
from keys.store.kv import Compare
from metasrv_base.errors import Unavailable
from procedures.kinds.failover.failover_table import FailoverTable
from procedures.kinds.orphans.remove_orphans import OrphanFolder, RemoveOrphans
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.serving import Opening
from tests.procedures.harness.copies.copied_tables import (
    LEARNER,
    copied_info,
    copied_route,
    put_copied_table,
    with_copied_table,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import TRUNCATE
from tests.procedures.harness.tables import put_schema, reserve_ids
from tests.procedures.kinds.copies.copy_lives import code_of, lives, regions
from tests.procedures.kinds.failover.runs import FIRST, ROOT, start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run


async def with_a_leader_that_is_alone(cluster: Cluster, fence: Compare) -> None:
    """dn-1 is alone in the set of a region; dn-2 has a learner."""
    cluster.plane.add("dn-1", "dn-2", "dn-3")
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    route = copied_route(TABLE, ("dn-1",), ((("dn-2", LEARNER),),))
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", 1, 2), route)


async def with_a_leader_that_is_gone(cluster: Cluster, fence: Compare) -> None:
    """The same leader is dead, and dn-2 is full, so that dn-3 has the region next."""
    await with_a_leader_that_is_alone(cluster, fence)
    cluster.plane.nodes["dn-1"].die()
    cluster.plane.nodes["dn-2"].disk_free_bytes = 0


async def with_a_leader_that_restarts(cluster: Cluster, fence: Compare) -> None:
    """dn-1 is alone in the set of a region; its process ends as its empty root is granted a lease,
    and is started again at once."""
    await with_a_leader_that_is_alone(cluster, fence)
    leader = cluster.plane.nodes["dn-1"]
    leader.dies_at, leader.comes_back = Opening.ANNOUNCED, True


def failover(source: str) -> FailoverTable:
    return FailoverTable(
        table_id=TABLE, name="t", source=source, region_ids=(FIRST,), reason="started again"
    )


def test_given_a_leader_alone_that_starts_again_when_truncated_then_a_failover_opens_it() -> None:
    """It opens nothing at that epoch any more, and its failover waits for the truncate."""
    ends, cluster = lives(
        ("truncate_table", TRUNCATE),
        ("failover_table", failover("dn-1")),
        given=with_a_leader_that_restarts,
    )

    assert list(map(code_of, ends)) == [None, None]
    (region,) = regions(cluster)
    assert (region["leader"], region["state"], region["epoch"]) == ("dn-1", "open", 3)
    assert cluster.plane.violations == []


def restarts(cluster: Cluster) -> None:
    """The process of dn-3 ends, and is started again at once."""
    leader = cluster.plane.nodes["dn-3"]
    leader.die()
    leader.alive = True


def loses_its_files(cluster: Cluster) -> None:
    """The empty root of dn-3 is lost."""
    leader = cluster.plane.nodes["dn-3"]
    leader.lost[FIRST] = leader.serving.pop(FIRST)
    del cluster.plane.storage.folders[leader.lost[FIRST].root]


async def truncated(
    cluster: Cluster, refused: str, then: Callable[[Cluster], None]
) -> ProcedureHistory:
    """The end of a truncate. *then*: done while the nodes refuse an order of that kind, which they
    refuse no longer afterwards."""
    await cluster.detected()
    procedure = await start(cluster, "truncate_table", TRUNCATE)
    await cluster.clock.sleep_ms(1_000)
    for node in cluster.plane.nodes.values():
        node.refuses[refused] = Unavailable("not-ready")
    await cluster.clock.sleep_ms(60_000)
    then(cluster)
    for node in cluster.plane.nodes.values():
        node.refuses.clear()
    assert await cluster.quiet(), f"it never ends: {cluster.living()}"
    history = await cluster.leader.manager.find(procedure)
    assert isinstance(history, ProcedureHistory)
    return history


@pytest.mark.parametrize("then", [restarts, loses_its_files])
@pytest.mark.parametrize("refused", ["open", "discard"])
def test_given_a_leader_that_needs_a_failover_when_truncated_then_it_ends_and_leaves_the_folder(
    refused: str, then: Callable[[Cluster], None]
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_leader_that_is_gone, {})

        history = await truncated(cluster, refused, then)

        assert code_of(history) is None
        assert history.result is not None
        assert history.result["left_behind"] == [ROOT]
        assert ROOT in cluster.plane.storage.folders
        assert cluster.plane.violations == []

    run(main, 1)


async def with_leaders_that_lost_their_files(cluster: Cluster, fence: Compare) -> None:
    """dn-1 lives and leads three regions, two of them with copies; its folders are gone."""
    await with_copied_table(cluster, fence)
    leader = cluster.plane.nodes["dn-1"]
    for region_id, serving in leader.serving.items():
        leader.lost[region_id] = serving
        del cluster.plane.storage.folders[serving.root]
    leader.serving.clear()


def test_given_living_leaders_that_lost_their_files_when_truncated_then_it_ends() -> None:
    """They lead empty regions; their old roots have no fence, and nothing to be deleted."""
    (history,), cluster = lives(
        ("truncate_table", TRUNCATE), given=with_leaders_that_lost_their_files
    )

    assert code_of(history) is None
    assert history.result is not None
    assert history.result["left_behind"] == []
    assert [(each["leader"], each["state"], each["epoch"]) for each in regions(cluster)] == [
        ("dn-1", "open", 2)
    ] * 3
    assert not cluster.plane.nodes["dn-1"].lost
    assert cluster.plane.violations == []


def test_given_a_folder_that_a_truncate_has_left_when_its_node_is_back_then_it_is_an_orphan() -> (
    None
):
    orphan = OrphanFolder(root=ROOT, region_id=FIRST)
    remove = RemoveOrphans(node="dn-1", deletes=False, folders=(orphan,), grace_ms=1)

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_leader_that_is_gone, {})
        await truncated(cluster, "discard", restarts)
        await finish(cluster, "failover_table", failover("dn-3"), {})
        (region,) = regions(cluster)
        assert (region["leader"], region["state"], region["epoch"]) == ("dn-3", "open", 3)

        cluster.plane.nodes["dn-1"].alive = True
        await cluster.clock.sleep_ms(10_000)
        history = await finish(cluster, "remove_orphans", remove, {})

        assert history.result is not None
        assert history.result["folders"] == {ROOT: "old-epoch"}
        assert ROOT not in cluster.plane.storage.folders

    run(main, 1)
