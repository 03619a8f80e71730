"""A schema of many tables is dropped in bounded transactions, whoever leads meanwhile."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from keys.key import Key
from keys.model.families import family_of
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureKey, ProcedureOutcome
from keys.model.removed import RemovedTableInfoKey
from keys.model.tables import TableInfoKey, TableNameKey, TableRouteKey
from keys.store.kv import TXN_OPS_MAX, Delete, Put, Request, TxnAnswer
from keys.store.memory import MemoryKv
from procedures.engine.submit import SubmitRequest
from procedures.kinds.namespaces.drop_schema import DROP_SCHEMA, WIDTH, DropSchema
from tests.fakes.cluster import Cluster
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.harness.tables import put_table, table_info
from tests.procedures.kinds.log_bytes import sizes_of
from tests.sim.loop import SimLoop, run

TABLES = 120
"""Several rounds; ten thousand are more of the same."""
DROP = DropSchema(catalog="main", name="public", schema_id=1024, cascade=True)


class Measuring(MemoryKv):
    """Measures the largest transaction, and the number of procedures that had a record at once."""

    def meet(self) -> None:
        self.ops = self.under_way = self.tables = 0
        self.living: set[bytes] = set()
        self.halfway = asyncio.Event()

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        answer = await super().txn(request, deadline_ms=deadline_ms)
        self.ops = max(self.ops, len(request.writes), len(request.compares))
        for write in request.writes:
            family = family_of(write.key)
            if family is ProcedureKey and isinstance(write, Put):
                self.living.add(write.key)
            self.living -= {write.key} if isinstance(write, Delete) else set()
            self.tables += family is RemovedTableInfoKey
        self.under_way = max(self.under_way, len(self.living))
        if self.tables >= TABLES // 2:
            self.halfway.set()
        return answer


@pytest.mark.slow
@pytest.mark.case("online 66")
def test_given_a_schema_of_many_tables_when_dropped_then_in_bounded_transactions_to_its_end() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, make_store=Measuring)
        store = cluster.kv
        assert isinstance(store, Measuring)
        store.meet()
        fence = await cluster.bootstrap()
        await with_schema(cluster, fence)
        for number in range(TABLES):
            await put_table(cluster, fence, table_info(2_000 + number, f"t{number}", 1), ("dn-1",))
        await cluster.started()
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=None
        )
        submission = SubmitRequest(cluster.ids.procedure_id(), client, "b")
        await cluster.leader.manager.submit(DROP_SCHEMA, DROP, submission)
        await store.halfway.wait()
        cluster.loop.kill(cluster.leader.node)
        left = count(cluster, TableInfoKey)
        await cluster.started("meta-2")
        ended = await cluster.leader.manager.wait(submission.procedure, deadline_ms=60_000)

        assert 0 < left < TABLES, "the first leader has done some of it"
        assert isinstance(ended, ProcedureHistory)
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert store.ops <= TXN_OPS_MAX
        assert 1 < store.under_way <= WIDTH + 1
        kept = [count(cluster, one) for one in (TableInfoKey, TableRouteKey, TableNameKey)]
        assert (kept, count(cluster, RemovedTableInfoKey)) == ([0, 0, 0], TABLES)
        assert not cluster.plane.nodes["dn-1"].serving

    run(main, 1)


@pytest.mark.slow
def test_given_twice_as_many_tables_when_dropped_then_twice_the_bytes_at_most() -> None:
    small, large = written(40), written(80)

    assert large.total < 2 * small.total
    assert large.trail == small.trail


@dataclass(frozen=True)
class Written:
    """By a drop of a schema, to the parent's record and history."""

    total: int
    """Bytes."""
    trail: tuple[str, ...]


def written(tables: int) -> Written:
    async def main(loop: SimLoop) -> Written:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_schema(cluster, fence)
        for number in range(tables):
            await put_table(cluster, fence, table_info(2_000 + number, f"t{number}", 1), ("dn-1",))
        await cluster.started()
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=None
        )
        submission = SubmitRequest(cluster.ids.procedure_id(), client, "b")
        await cluster.leader.manager.submit(DROP_SCHEMA, DROP, submission)
        ended = await cluster.leader.manager.wait(submission.procedure, deadline_ms=600_000)
        assert isinstance(ended, ProcedureHistory)
        return Written(sum(sizes_of(cluster, submission.procedure)), ended.last.trail)

    return run(main, 1)


def count(cluster: Cluster, family: type[Key[Any]]) -> int:
    return sum(family_of(key) is family for key in cluster.stored())
