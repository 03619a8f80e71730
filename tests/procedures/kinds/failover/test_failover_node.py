"""Children outlive a crash of the leader: they go on, and their parent finds them again. A node is
left while it lives: its leases are waited for, and nothing opens before they end."""

from keys.model.records import ProcedureHistory, ProcedureOutcome
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from procedures.kinds.failover.failover_table import FailoverTable
from tests.fakes.cluster import Cluster
from tests.fakes.datanodes.nodes import FakeNode
from tests.fakes.datanodes.plane import LEASE_MS
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.placing.preferring import ELSEWHERE, leader_after, preferring
from tests.procedures.harness.scenarios import with_table, with_two_tables_and_dead_node
from tests.procedures.harness.tables import region_ids, rows_of
from tests.procedures.kinds.failover.runs import CLIENT, ROOT, children_of, outcome, start
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


def test_given_a_living_node_when_drained_then_each_region_opens_once_its_lease_has_ended() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})
        held = region_ids(TABLE, 2)
        for region in held:
            cluster.plane.lease("dn-1", region, 1)
        request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
        state = FailoverNode(node="dn-1", reason="a new disk")
        began_ms = cluster.clock.mono_ms()

        await cluster.leader.manager.submit(FAILOVER_NODE, state, request)
        await cluster.clock.sleep_ms(LEASE_MS // 2)
        waits = [w for _, e in cluster.leader.manager.living() for w in e.live.waiting]
        end = await cluster.leader.manager.wait(request.procedure, deadline_ms=60_000)

        assert ("region_lease", "dn-1") in [(wait.kind, wait.holder) for wait in waits]
        assert isinstance(end, ProcedureHistory)
        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.clock.mono_ms() - began_ms >= LEASE_MS
        assert cluster.plane.violations == []
        assert cluster.plane.nodes["dn-1"].alive
        del cluster.plane.nodes["dn-1"]
        assert [cluster.plane.rows(region) for region in held] == [rows_of(r) for r in held]

    run(main, 1)


def test_given_a_node_whose_regions_were_promoted_when_drained_then_copies_are_told_apart() -> None:
    """It leads nothing any more, and stays in the routes as a learner."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_copied_table, {})

        ended = await finish(cluster, "failover_node", FailoverNode(node="dn-1", reason="test"), {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        counts = {"moves": 1, "left": [], "left_count": 0, "copies": 1}
        assert ended.result == {"node": "dn-1", **counts}
        assert cluster.leader.ports is not None
        regions = cluster.leader.ports.applied().tables[TABLE].route.region_routes
        assert ["dn-1" in region.nodes for region in regions] == [True, True, False]

    run(main, 1)


def test_given_a_preferred_zone_when_the_leader_dies_then_its_copy_leads() -> None:
    state = FailoverNode(node="dn-1", reason="test")

    preferred = leader_after("failover_node", state, preferring("dn-3", dies="dn-1"))
    usual = leader_after("failover_node", state, preferring(ELSEWHERE, dies="dn-1"))

    assert (preferred, usual) == ("dn-3", "dn-2")
