"""A create whose id was given out before."""

from collections.abc import Awaitable, Callable

import pytest

from keys.model.records import ProcedureOutcome
from keys.model.tables import TableNameKey
from keys.store.kv import Compare
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.create_table import CreateTable
from tests.fakes.cluster import Cluster
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_dropped_table, with_table
from tests.procedures.harness.tables import table_info, table_route
from tests.procedures.kinds.failover.runs import outcome, start
from tests.sim.loop import SimLoop, run

AGAIN = CreateTable(info=table_info(TABLE, "new", 2), route=table_route(TABLE, ("dn-1", "dn-2")))


@pytest.mark.parametrize("given", [with_table, with_dropped_table])
def test_given_a_table_of_that_id_when_another_is_created_then_no_region_is_touched(
    given: Callable[[Cluster, Compare], Awaitable[None]],
) -> None:
    ends: list[ProcedureOutcome] = []

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS)
        await given(cluster, await cluster.bootstrap())
        await cluster.started()
        before = {name: list(node.effects) for name, node in cluster.plane.nodes.items()}
        procedure = await start(cluster, "create_table", AGAIN)
        for _ in range(500):
            end = await outcome(cluster, procedure)
            if end is not None:
                ends.append(end)
                break
            await cluster.clock.sleep_ms(10)

        assert before == {name: node.effects for name, node in cluster.plane.nodes.items()}
        assert bytes(TableNameKey("main", "public", "new")) not in cluster.stored()

    run(main, 1)
    assert ProcedureOutcome.SUCCEEDED not in ends
