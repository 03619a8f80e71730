"""Children outlive a crash of the leader: they go on, and their parent finds them again."""

from keys.model.records import ProcedureHistory, ProcedureOutcome
from procedures.kinds.failover.failover_node import FailoverNode
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.scenarios import with_two_tables_and_dead_node
from tests.procedures.harness.tables import region_ids
from tests.procedures.kinds.failover.runs import ROOT, children_of, start
from tests.procedures.kinds.runs import begun
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
