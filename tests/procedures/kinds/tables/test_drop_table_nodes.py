"""Tables that are dropped, and purged, while a node takes requests and answers none: its heartbeats
come, and nobody waits for it longer than for an order."""

import pytest

from keys.model.records import ProcedureOutcome
from keys.model.tables import TableInfoKey
from keys.store.kv import Compare
from procedures.kinds.tables.create_table import CreateTable
from procedures.kinds.tables.purge_table import PurgeTable
from tests.fakes.cluster import Cluster
from tests.fakes.hanging import HungNodes, hang
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_table
from tests.procedures.harness.tables import put_table, region_ids, table_info, table_route
from tests.procedures.kinds.failover.runs import outcome, start
from tests.procedures.kinds.runs import begun, drop, finish
from tests.sim.loop import SimLoop, run

BACK_MS = 20_000
"""Some heartbeats."""
HUNG = "dn-1"


@pytest.fixture
def hung(monkeypatch: pytest.MonkeyPatch) -> HungNodes:
    return hang(monkeypatch, HUNG)


def leased_ms(cluster: Cluster) -> int:
    assert cluster.leader.ports is not None
    return cluster.leader.ports.leases.free_in_ms(HUNG, region_ids(TABLE, 3))


def served(cluster: Cluster) -> list[str]:
    return sorted(region for node in cluster.plane.nodes.values() for region in node.serving)


async def dropped(cluster: Cluster) -> int:
    """Drops the table, and returns how long that took, in ms."""
    began_ms = cluster.clock.mono_ms()
    ended = await finish(cluster, "drop_table", drop(), {})
    assert ended.outcome is ProcedureOutcome.SUCCEEDED
    assert bytes(TableInfoKey(TABLE)) not in cluster.stored()
    return cluster.clock.mono_ms() - began_ms


async def purged(cluster: Cluster) -> list[str]:
    """Purges the table, and returns the folders that stay."""
    assert cluster.leader.follower is not None
    dropped = cluster.leader.follower.catalog.tables[TABLE]
    ended = await finish(cluster, "purge_table", PurgeTable.of(dropped), {})
    assert ended.outcome is ProcedureOutcome.SUCCEEDED
    assert ended.result is not None
    return list(ended.result["left_behind"])


def test_given_a_node_that_answers_no_order_when_its_table_is_dropped_then_heartbeats_close_it(
    hung: HungNodes,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})

        assert await dropped(cluster) < 45_000

        assert leased_ms(cluster) == 0, "no statement is taken any more"
        await cluster.clock.sleep_ms(BACK_MS)
        assert served(cluster) == []
        await hung.wake()
        await cluster.clock.sleep_ms(BACK_MS)
        assert served(cluster) == []

    run(main, 1)


def test_given_a_node_that_is_known_to_answer_no_orders_then_only_its_leases_are_waited_for(
    hung: HungNodes,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})
        new = CreateTable(info=table_info(1090, "new", 1), route=table_route(1090, (HUNG,)))
        await finish(cluster, "create_table", new, {})

        took_ms = await dropped(cluster)

        assert 5_000 < took_ms < 12_000
        assert leased_ms(cluster) == 0

    run(main, 1)


def test_given_a_node_that_answers_no_order_when_its_table_is_purged_then_it_drops_it_later(
    hung: HungNodes,
) -> None:
    """No region of a purged table comes back, and what it has is told of."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_table, {})
        await dropped(cluster)
        began_ms = cluster.clock.mono_ms()

        left = await purged(cluster)

        first, second, _ = region_ids(TABLE, 3)
        assert sorted(left) == [f"/disks/dn-1/regions/{region}-1" for region in (first, second)]
        assert cluster.clock.mono_ms() - began_ms < 45_000
        await hung.wake()
        await cluster.clock.sleep_ms(BACK_MS)
        assert served(cluster) == []
        assert set(left) >= set(cluster.plane.storage.folders), "nothing else is left"

    run(main, 1)


def test_given_many_drops_that_wait_for_a_node_when_another_table_is_made_then_it_waits_not(
    hung: HungNodes,
) -> None:
    """They take no places of the admission limit."""
    many = range(1050, 1062)

    async def given(cluster: Cluster, fence: Compare) -> None:
        await with_table(cluster, fence)
        for table in many:
            await put_table(cluster, fence, table_info(table, f"d{table}", 1), (HUNG,))

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})
        drops = [
            await start(cluster, "drop_table", drop(table_id=table, name=f"d{table}"))
            for table in many
        ]
        await cluster.clock.sleep_ms(1_000)
        began_ms = cluster.clock.mono_ms()
        new = CreateTable(info=table_info(1090, "new", 1), route=table_route(1090, ("dn-2",)))

        ended = await finish(cluster, "create_table", new, {})

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert cluster.clock.mono_ms() - began_ms < 1_000
        assert [await outcome(cluster, each) for each in drops] == [None] * len(drops)

    run(main, 1)
