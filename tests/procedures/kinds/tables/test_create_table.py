"""A create whose id was given out before."""

from collections.abc import Awaitable, Callable

import pytest

from keys.model.records import ProcedureOutcome
from keys.model.tables import TableNameKey
from keys.store.kv import Compare
from procedures.kinds.batch.batch import CommandBatch
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.create_table import CreateTable
from procedures.machine import ProcedureState
from procedures.ports import TransactionLimits
from tests.fakes.cluster import Cluster
from tests.procedures.harness.batches.batches import create
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.scenarios import with_dropped_table, with_table
from tests.procedures.harness.tables import region_ids, table_info, table_route
from tests.procedures.kinds.failover.runs import outcome, start
from tests.sim.loop import SimLoop, run

SMALL, TINY = TransactionLimits(operations=3), TransactionLimits(operations=3, record_bytes=1)
AGAIN = CreateTable(info=table_info(TABLE, "new", 2), route=table_route(TABLE, ("dn-1", "dn-2")))


BATCH = CommandBatch(
    members=(create(TABLE + 50, "other", ("dn-1",)), create(TABLE, "new", ("dn-2",)))
)


def effects(cluster: Cluster) -> list[str]:
    """Orders that nodes have carried out for regions of the table that has the id."""
    regions = {str(region) for region in region_ids(TABLE, 2)}
    every = (effect for node in cluster.plane.nodes.values() for effect in node.effects)
    return [effect for effect in every if regions & set(effect.split())]


@pytest.mark.parametrize(
    ("kind", "state", "one_transaction"),
    [
        ("create_table", AGAIN, TransactionLimits()),
        ("batch", BATCH, TransactionLimits()),
        ("batch", BATCH, SMALL),
        ("batch", BATCH, TINY),
    ],
    ids=["alone", "batch", "batch in parts", "commands in parts"],
)
@pytest.mark.parametrize("given", [with_table, with_dropped_table])
def test_given_a_table_of_that_id_when_another_is_created_then_no_region_is_touched(
    given: Callable[[Cluster, Compare], Awaitable[None]],
    kind: str,
    state: ProcedureState,
    one_transaction: TransactionLimits,
) -> None:
    ends: list[ProcedureOutcome] = []

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS, one_transaction=one_transaction)
        await given(cluster, await cluster.bootstrap())
        await cluster.started()
        before = effects(cluster)
        procedure = await start(cluster, kind, state)
        for _ in range(500):
            end = await outcome(cluster, procedure)
            if end is not None:
                ends.append(end)
                break
            await cluster.clock.sleep_ms(10)

        assert effects(cluster) == before
        for name in ("new", "other"):
            assert bytes(TableNameKey("main", "public", name)) not in cluster.stored()

    run(main, 1)
    assert ProcedureOutcome.SUCCEEDED not in ends
