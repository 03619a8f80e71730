"""A node is left while it lives: its leases are waited for, and nothing opens before they end."""

from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FAILOVER_NODE, FailoverNode
from tests.fakes.datanodes.plane import LEASE_MS
from tests.procedures.harness.copies.copied_tables import with_copied_table
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_table
from tests.procedures.harness.tables import region_ids, rows_of
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

CLIENT = ClientRequirements(submitted_by="ops", request_id="r", statement={})


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
