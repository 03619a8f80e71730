"""Children outlive a crash of the leader: they go on, and their parent finds them again."""

from keys.model.records import ProcedureHistory, ProcedureOutcome
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.failover.failover_table import FailoverTable
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.scenarios import with_two_tables_and_dead_node
from tests.procedures.harness.tables import region_ids
from tests.procedures.kinds.failover.runs import ROOT, children_of, outcome, start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

NODE = FailoverNode(node="dn-1", reason="test")
OTHER_REGION = region_ids(OTHER, 1)[0]
FREE_MS = 20_000  # from the election until no lease of a leader before can be alive


async def failing_over(cluster: Cluster) -> tuple[str, dict[int, str]]:
    """The parent, once it waits for its children, and these by table."""
    parent = await start(cluster, "failover_node", NODE)
    await cluster.clock.sleep_ms(1_000)
    entry = cluster.leader.manager.entry(parent)
    assert entry is not None
    assert entry.held.record.step == "gather"
    return parent, children_of(cluster, parent)


async def ended(cluster: Cluster, procedure: str) -> ProcedureHistory:
    found = await cluster.leader.manager.find(procedure)
    assert isinstance(found, ProcedureHistory)
    return found


def test_given_children_under_way_when_the_leader_dies_then_they_go_on_where_they_stood() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables_and_dead_node, {})
        parent, children = await failing_over(cluster)
        loop.kill(cluster.leader.node)

        assert await cluster.quiet()
        assert children_of(cluster, parent) == children
        for child in children.values():
            history = await ended(cluster, child)
            assert (history.outcome, history.last.resumed) == (ProcedureOutcome.SUCCEEDED, 1)
            assert history.last.parent == parent
            steps = [beat.step for beat in history.last.timeline]
            assert steps.count("reroute") == 1, "what it had done before is not done again"

    run(main, 1)


def test_given_a_child_that_is_over_when_the_leader_dies_then_the_parent_finds_its_end() -> None:
    """The other one, whose storage is lost, is still at it."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables_and_dead_node, {})
        cluster.plane.storage.lost.add(ROOT)
        parent, children = await failing_over(cluster)
        await cluster.clock.sleep_ms(FREE_MS)
        first = await ended(cluster, children[OTHER])
        loop.kill(cluster.leader.node)
        cluster.plane.storage.lost.clear()

        assert await cluster.quiet()
        assert children_of(cluster, parent) == children
        assert await ended(cluster, children[OTHER]) == first, "nobody has run it again"
        assert (await ended(cluster, children[TABLE])).last.resumed == 1
        epochs = {node.serving[OTHER_REGION].epoch for node in serving(cluster)}
        assert epochs == {2}

    run(main, 1)


def serving(cluster: Cluster) -> list[FakeNode]:
    return [node for node in cluster.plane.nodes.values() if OTHER_REGION in node.serving]


def test_given_a_table_that_stays_lost_when_the_node_dies_again_then_its_other_tables_move() -> (
    None
):
    """The failover of before lasts for as long as the files of that table are lost."""
    back = FailoverTable(
        table_id=OTHER,
        name="main.public.u",
        source="dn-2",
        region_ids=(OTHER_REGION,),
        reason="test",
        targets=("dn-1",),
    )

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables_and_dead_node, {})
        node = cluster.plane.nodes["dn-1"]
        cluster.plane.storage.lost.add(ROOT)
        first = await start(cluster, "failover_node", NODE)
        await cluster.clock.sleep_ms(120_000)
        node.alive = True
        for source in ("dn-2", "dn-3"):
            move = back.model_copy(update={"source": source})
            await finish(cluster, "failover_table", move, {})
        assert cluster.plane.rows(OTHER_REGION) is not None
        node.die()

        await cluster.clock.sleep_ms(300_000)
        route = history_of(cluster.kv._store.log_from(1)).family("__table_route")[(str(OTHER),)]
        assert {one["leader"] for one in route["region_routes"]} <= {"dn-2", "dn-3"}
        assert await outcome(cluster, first) is None
        cluster.plane.storage.lost.clear()
        assert await cluster.quiet()

    run(main, 1)
