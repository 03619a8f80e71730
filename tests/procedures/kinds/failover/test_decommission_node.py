"""A node whose disk is gone leaves by one command: failover, then removal."""

import pytest

from keys.model.records import ProcedureHistory, ProcedureOutcome
from keys.store.kv import Compare
from procedures.kinds.failover import decommission_node
from procedures.kinds.failover.decommission_node import DecommissionNode
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.copies.leaving import with_copies_on_a_dead_node
from tests.procedures.harness.ends import OTHER, TABLE
from tests.procedures.harness.scenarios import with_two_tables, with_two_tables_and_dead_node
from tests.procedures.harness.tables import NODES, put_schema, reserve_ids
from tests.procedures.kinds.failover.runs import ROOT, start
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

STATE = DecommissionNode(node="dn-1", reason="its disk is gone", by="anna")
LONG_MS = 60_000
GONE = ("dn-1", "dn-2")


def nodes(cluster: Cluster) -> set[str]:
    assert cluster.leader.book is not None
    return {one.node_id for one in cluster.leader.book.registered()}


async def outcome(cluster: Cluster, procedure: str) -> ProcedureOutcome | None:
    """None: it is not over."""
    found = await cluster.leader.manager.find(procedure)
    return found.outcome if isinstance(found, ProcedureHistory) else None


def test_given_storage_that_is_gone_when_decommissioned_then_removed_beside_its_failover() -> None:
    """Lost regions are tried for as long as they are lost; the node does not wait for that."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables_and_dead_node, {})
        cluster.plane.storage.lost.add(ROOT)
        parent = await start(cluster, "decommission_node", STATE)
        await cluster.clock.sleep_ms(LONG_MS)

        assert await outcome(cluster, parent) is ProcedureOutcome.SUCCEEDED
        assert nodes(cluster) == {"dn-2", "dn-3"}
        assert len(cluster.living()) == 2, "the failover of the node, and of the lost table"
        cluster.plane.storage.lost.clear()
        assert await cluster.quiet()

    run(main, 1)


def test_given_a_node_that_is_heard_when_decommissioned_then_nothing_moves_until_it_dies() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables, {})
        parent = await start(cluster, "decommission_node", STATE)
        await cluster.clock.sleep_ms(LONG_MS)
        waiting = (await outcome(cluster, parent), nodes(cluster), len(cluster.living()))
        cluster.plane.nodes["dn-1"].die()
        assert await cluster.quiet()

        assert waiting == (None, {"dn-1", "dn-2", "dn-3"}, 1)
        assert await outcome(cluster, parent) is ProcedureOutcome.SUCCEEDED
        assert nodes(cluster) == {"dn-2", "dn-3"}

    run(main, 1)


def test_given_another_leader_when_it_takes_over_then_the_node_is_not_removed_twice() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_tables_and_dead_node, {})
        parent = await start(cluster, "decommission_node", STATE)
        while "dn-1" in nodes(cluster):
            await cluster.clock.sleep_ms(1)
        loop.kill(cluster.leader.node)
        assert await cluster.quiet()

        assert await outcome(cluster, parent) is ProcedureOutcome.SUCCEEDED
        assert nodes(cluster) == {"dn-2", "dn-3"}

    run(main, 1)


@pytest.mark.parametrize("at_once", [1, 2, 64])
def test_given_more_copies_than_leave_at_once_when_decommissioned_then_page_by_page(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decommission_node, "COPIES_AT_ONCE", at_once)

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_copies_on_a_dead_node, {})

        ended = await finish(cluster, "decommission_node", STATE, {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert nodes(cluster) == {"dn-2", "dn-3"}
        assert cluster.leader.ports is not None
        tables = cluster.leader.ports.applied().tables
        regions = [region for one in (TABLE, OTHER) for region in tables[one].route.region_routes]
        assert {node for region in regions for node in region.nodes} == {"dn-2", "dn-3"}

    run(main, 1)


async def with_two_dead_nodes(cluster: Cluster, fence: Compare) -> None:
    """Each has the only other copy of what the other leads."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    for table, name, (leader, copy) in ((TABLE, "t", GONE), (OTHER, "u", GONE[::-1])):
        route = copied_route(table, (leader,), (((copy, IN_SYNC),),))
        await put_copied_table(cluster, fence, copied_info(table, name, 1), route)
    for node in GONE:
        cluster.plane.nodes[node].die()


def test_given_two_nodes_that_are_lost_when_both_are_removed_then_neither_waits_for_the_other() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_two_dead_nodes, {})

        for node in GONE:
            await start(cluster, "decommission_node", STATE.model_copy(update={"node": node}))

        assert await cluster.quiet()
        assert nodes(cluster) == {"dn-3"}

    run(main, 1)
