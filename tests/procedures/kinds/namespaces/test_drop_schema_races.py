"""A schema or a catalog is not dropped when something comes into it between the look and the drop.

Locks exclude it; the transaction does not rely on them.
"""

from collections.abc import Awaitable, Callable

import pytest

from keys.commit.change import change
from keys.commit.committer import Committed, Committer
from keys.commit.txn import Txn, snapshot
from keys.model.catalogs import CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.log import SchemaCreated, SchemaDropped
from keys.model.origin import Origin
from keys.model.records import ProcedureHistory
from keys.model.tables import TableNameKey, TableNameRecord
from keys.store.kv import Compare
from procedures.kinds.namespaces.drop_catalog import DropCatalog
from procedures.kinds.namespaces.drop_schema import DropSchema
from procedures.kinds.registry import KINDS
from procedures.machine import ProcedureState
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.keys.commit.changes import untold
from tests.procedures.harness.scenarios import with_schema
from tests.procedures.kinds.failover.runs import start
from tests.sim.loop import SimLoop, run

SALES, HR = SchemaNameKey("main", "sales"), SchemaNameKey("main", "hr")
MAIN = CatalogNameKey("main")
TABLE = TableNameKey("main", "sales", "t")
Coming = Callable[[Cluster], Awaitable[Txn]]


async def a_table(cluster: Cluster) -> Txn:
    stored = await snapshot(cluster.kv, TABLE, deadline_ms=DEADLINE_MS)
    return untold(Txn.on(stored), TABLE, TableNameRecord(table_id=1090))


async def a_schema(cluster: Cluster) -> Txn:
    info = SchemaInfo(schema_id=1031, catalog="main", name="hr", created_at_ms=1)
    stored = await snapshot(cluster.kv, HR, deadline_ms=DEADLINE_MS)
    return change(stored, SchemaCreated(info=info))


async def without_schemas(cluster: Cluster, fence: Compare) -> None:
    """The catalog main has none."""
    public, entry = SchemaNameKey("main", "public"), SchemaDropped(catalog="main", name="public")
    stored = await snapshot(cluster.kv, public, deadline_ms=DEADLINE_MS)
    await cluster.change(fence, change(stored, entry))


@pytest.mark.parametrize(
    ("given", "drop", "name", "comes"),
    [
        (with_schema, DropSchema(catalog="main", name="sales", schema_id=1030), SALES, a_table),
        (without_schemas, DropCatalog(name="main", catalog_id=1024), MAIN, a_schema),
    ],
    ids=["schema", "catalog"],
)
def test_given_something_new_inside_when_it_is_about_to_be_dropped_then_it_stays(
    given: Callable[[Cluster, Compare], Awaitable[None]],
    drop: ProcedureState,
    name: SchemaNameKey | CatalogNameKey,
    comes: Coming,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, KINDS)
        seen: list[bool] = []

        class Interrupted(Committer):
            async def commit(
                self, txn: Txn, *, procedure: str | None = None, origin: Origin | None = None
            ) -> Committed:
                if txn.writes.get(bytes(name), b"") is None and not seen:
                    seen.append(bytes(name) in cluster.stored())
                    await super().commit(await comes(cluster))
                return await super().commit(txn, procedure=procedure)

        cluster.make_committer = Interrupted
        await given(cluster, await cluster.bootstrap())
        await cluster.started()
        kind = "drop_schema" if isinstance(drop, DropSchema) else "drop_catalog"
        procedure = await start(cluster, kind, drop)
        history = await cluster.leader.manager.wait(procedure, deadline_ms=60_000)

        assert seen == [True]
        assert bytes(name) in cluster.stored()
        assert isinstance(history, ProcedureHistory)
        assert history.last.error is not None
        assert history.last.error.code == "not-empty"

    run(main, 1)
