"""A table is truncated while a node that leads regions of it lives, and answers no orders."""

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from keys.store.kv import Compare
from tests.fakes.cluster import Cluster
from tests.fakes.hanging import HungNodes, hang
from tests.procedures.harness.copies.copied_tables import with_three_in_sync
from tests.procedures.harness.scenarios import SCENARIOS, with_table
from tests.procedures.kinds.copies.copy_lives import regions
from tests.procedures.kinds.failover.runs import outcome, start
from tests.procedures.kinds.runs import Given, begun, finish
from tests.sim.loop import SimLoop, run

(TRUNCATE,) = (scenario for scenario in SCENARIOS if scenario.name == "truncate_table")
HUNG = "dn-1"
BEATS_MS = 20_000


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> HungNodes:
    return hang(monkeypatch, HUNG)


async def truncated(cluster: Cluster) -> ProcedureHistory:
    return await finish(cluster, TRUNCATE.kind, TRUNCATE.state, {})


def leased(cluster: Cluster) -> list[str]:
    """Regions on which the node has a lease."""
    now_ms = cluster.clock.mono_ms()
    leases = cluster.plane.leases.items()
    return [region for (node, region), ends_ms in leases if node == HUNG and ends_ms > now_ms]


@pytest.mark.parametrize("given", [with_table, with_three_in_sync])
def test_given_a_leader_that_answers_no_order_when_truncated_then_others_lead_the_empty_regions(
    given: Given, hung: HungNodes
) -> None:
    """Its leases are waited for, and no row of before is ever served again."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        began_ms = cluster.clock.mono_ms()

        ended = await truncated(cluster)

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.clock.mono_ms() - began_ms < 60_000
        assert HUNG not in {region["leader"] for region in regions(cluster)}
        await hung.wake()
        await cluster.clock.sleep_ms(BEATS_MS)
        assert {region["state"] for region in regions(cluster)} == {"open"}
        assert {cluster.plane.rows(region["region_id"]) for region in regions(cluster)} == {
            frozenset()
        }
        assert not cluster.plane.nodes[HUNG].serving
        assert not leased(cluster), "the order that arrived late brought no lease"

    run(main, 1)


def test_given_no_node_that_answers_when_they_do_again_then_the_empty_regions_are_made(
    hung: HungNodes,
) -> None:
    async def given(cluster: Cluster, fence: Compare) -> None:
        await with_table(cluster, fence)
        for node in ("dn-2", "dn-3"):
            hung.nodes.add(node)

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        procedure = await start(cluster, TRUNCATE.kind, TRUNCATE.state)
        await cluster.clock.sleep_ms(120_000)
        assert await outcome(cluster, procedure) is None
        hung.nodes.clear()

        assert await cluster.quiet()

        assert await outcome(cluster, procedure) is ProcedureOutcome.SUCCEEDED
        assert {region["state"] for region in regions(cluster)} == {"open"}
        assert max(region["epoch"] for region in regions(cluster)) <= 4, "one for each node"
        assert cluster.plane.violations == []

    run(main, 1)
