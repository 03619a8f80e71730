"""A node that leads many tables: its failover ends, and no record grows with their number."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.families import family_of
from keys.model.records import (
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedureOutcome,
    ProcedureRecord,
)
from keys.model.tables import DatanodeTableKey
from keys.store.kv import Compare, Delete, Request, TxnAnswer
from keys.store.memory import MemoryKv
from keys.value import decode
from procedures.engine.submit import SubmitRequest
from procedures.kinds.failover.failover_node import FailoverNode
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.registry import KINDS
from tests.fakes.cluster import LIMITS, Cluster
from tests.procedures.harness.agree import history_of
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.harness.tables import put_table, region_ids, rows_of, table_info
from tests.procedures.kinds.failover.runs import CLIENT, start
from tests.procedures.kinds.log_bytes import sizes_of
from tests.procedures.kinds.runs import begun
from tests.sim.loop import SimLoop, run

TABLES = 48
WIDTH = 8
TIMELINE_BYTES = 4_096  # the last 64 steps: bounded, and full only after some of them


class Halfway(MemoryKv):
    """It tells when half of the tables have left the node."""

    def meet(self) -> None:
        self.moved, self.halfway = 0, asyncio.Event()

    async def txn(self, request: Request, *, deadline_ms: int) -> TxnAnswer:
        answer = await super().txn(request, deadline_ms=deadline_ms)
        deleted = (one.key for one in request.writes if isinstance(one, Delete))
        self.moved += sum(family_of(key) is DatanodeTableKey for key in deleted)
        if self.moved >= TABLES // 2:
            self.halfway.set()
        return answer


async def with_wide_node(cluster: Cluster, fence: Compare) -> None:
    await with_schema(cluster, fence)
    for number in range(TABLES):
        await put_table(cluster, fence, table_info(2_000 + number, f"t{number}", 1), ("dn-1",))
    cluster.plane.nodes["dn-1"].die()


def most_children(cluster: Cluster, parent: str) -> int:
    """The largest number of children of *parent* that had a record at one moment."""
    living: set[bytes] = set()
    most = 0
    start, end = ProcedureKey.under()
    for revision in cluster.kv._store.log_from(1):
        for event in revision.events:
            if start <= event.key < end and event.key != bytes(ProcedureKey(parent)):
                living = living - {event.key} if event.value is None else living | {event.key}
        most = max(most, len(living))
    return most


@pytest.mark.slow
def test_given_a_node_of_many_tables_when_it_dies_then_it_ends_and_no_record_grows() -> None:
    """The leader dies half-way."""

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, make_store=Halfway)
        store = cluster.kv
        assert isinstance(store, Halfway)
        store.meet()
        await with_wide_node(cluster, await cluster.bootstrap())
        await cluster.started()
        state = FailoverNode(node="dn-1", reason="test", max_parallel=WIDTH)
        parent = await start(cluster, "failover_node", state)
        await store.halfway.wait()
        moved = store.moved
        loop.kill(cluster.leader.node)

        assert await cluster.quiet()
        ended = await cluster.leader.manager.find(parent)

        assert moved < TABLES
        assert isinstance(ended, ProcedureHistory)
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert ended.result == {"node": "dn-1", "moves": TABLES, "left": [], "left_count": 0}
        children = Counter(key.split(b"/")[0] for key in cluster.stored())
        assert children[b"__procedure_history"] == TABLES + 1, "one child for each, and no second"
        assert most_children(cluster, parent) <= WIDTH
        sizes = sizes_of(cluster, parent)
        assert max(sizes) - min(sizes) < TIMELINE_BYTES
        assert len(sizes) < 2 * TABLES / (WIDTH // 2) + 16
        assert len(ended.last.trail) <= 3

    run(main, 1)


@pytest.mark.slow
def test_given_a_schema_that_is_being_dropped_when_its_node_dies_then_no_table_is_moved() -> None:
    """A move would bring rows to another node only for the drop that waits for it."""

    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        await with_wide_node(cluster, await cluster.bootstrap())
        await cluster.started()
        drop = DropSchema(catalog="main", name="public", schema_id=1024, cascade=True)
        dropped = await start(cluster, "drop_schema", drop)
        while not is_hidden(cluster):
            await cluster.clock.sleep_ms(1)
        moved = await start(cluster, "failover_node", FailoverNode(node="dn-1", reason="test"))

        assert await cluster.quiet()

        ends = [await cluster.leader.manager.find(one) for one in (dropped, moved)]
        assert [one.outcome for one in ends if isinstance(one, ProcedureHistory)] == [
            ProcedureOutcome.SUCCEEDED,
            ProcedureOutcome.SUCCEEDED,
        ]
        kinds = Counter(record.kind for record in histories(cluster))
        assert kinds == {"drop_schema": 1, "drop_table": TABLES, "failover_node": 1}

    run(main, 1)


def is_hidden(cluster: Cluster) -> bool:
    raw = cluster.stored()[bytes(SchemaNameKey("main", "public"))]
    return decode(SchemaInfo, raw, key="schema").dropping is not None


def histories(cluster: Cluster) -> Iterator[ProcedureRecord]:
    for key, raw in cluster.stored().items():
        if family_of(key) is ProcedureHistoryKey:
            yield decode(ProcedureHistory, raw, key=key.decode()).last


# ---- none waits for the storage, or the moves, of others

PLACES = max(LIMITS.running_max.values())
MANY = tuple(range(1050, 1050 + PLACES + 4))
LAST = region_ids(MANY[-1], 1)[0]
AWAY = [f"/disks/dn-1/regions/{region_ids(table, 1)[0]}-1" for table in MANY[:-1]]


async def with_many_tables_and_dead_node(cluster: Cluster, fence: Compare) -> None:
    await with_schema(cluster, fence)
    for table in MANY:
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
        for table in MANY:
            (region,) = region_ids(table, 1)
            assert cluster.plane.rows(region) == rows_of(region)
        assert history_of(cluster.kv._store.log_from(1)).wrong == []

    run(main, 1)
