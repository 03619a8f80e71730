"""A node with many tables: none waits to be opened for the storage, or the moves, of others."""

from keys.store.kv import Compare
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.registry import KINDS
from tests.fakes.cluster import LIMITS, Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.harness.tables import put_table, region_ids, rows_of, table_info
from tests.procedures.kinds.failover.runs import CLIENT
from tests.procedures.kinds.runs import begun
from tests.sim.loop import SimLoop, run

PLACES = max(LIMITS.running_max.values())
TABLES = tuple(range(1050, 1050 + PLACES + 4))
LAST = region_ids(TABLES[-1], 1)[0]
AWAY = [f"/disks/dn-1/regions/{region_ids(table, 1)[0]}-1" for table in TABLES[:-1]]


async def with_many_tables_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_schema(cluster, fence)
    for table in TABLES:
        await put_table(cluster, fence, table_info(table, f"t{table}", 1), ("dn-1",))
    cluster.plane.nodes["dn-1"].die()


def test_given_more_lost_tables_than_places_when_a_node_dies_then_the_others_still_open() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_many_tables_and_dead_node, {})
        cluster.plane.storage.lost.update(AWAY)
        request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "")
        state = FailoverNode(node="dn-1", reason="test")
        await cluster.leader.manager.submit(KINDS["failover_node"], state, request)

        await cluster.clock.sleep_ms(30_000)
        assert cluster.plane.rows(LAST) == rows_of(LAST)
        assert len(cluster.living()) == 1 + len(AWAY)

        cluster.plane.storage.lost.clear()
        assert await cluster.quiet()
        for table in TABLES:
            (region,) = region_ids(table, 1)
            assert cluster.plane.rows(region) == rows_of(region)
        assert history_of(cluster.kv._store.log_from(1)).wrong == []

    run(main, 1)
