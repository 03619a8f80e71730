"""One cluster in full order: two nodes, two living tables, a dropped one, a region that borrows."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keys.model.records import (
    Idempotency,
    IdempotencyKey,
    ProcedureHistory,
    ProcedureHistoryKey,
    ProcedureKey,
    ProcedurePhase,
)
from keys.model.tables import TableInfo
from keys.store.memory import MemoryKv
from metasrv.check.check_input import ServerReport
from procedures.kinds.namespaces.create_schema import CREATE_SCHEMA, CreateSchema
from tests.fakes.clock import FakeClock
from tests.keys.model.samples import CHILD, DIGEST, PROCEDURE, RECORD, SAMPLES
from tests.metasrv.check.cluster import (
    CLUSTER_ID,
    DROPPED,
    FLIGHTS,
    SALES,
    WEATHER,
    Cluster,
    info_of,
)

SERVER = "http://127.0.0.1:4000"


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    clock = FakeClock()
    made = Cluster(MemoryKv(clock), tmp_path, clock)
    await furnish(made)
    yield made
    for region in made.regions.values():
        region.close()


async def furnish(cluster: Cluster) -> None:
    """Everything that a rule may look at, as it should be."""
    await cluster.start()
    for node in ("dn-1", "dn-2"):
        await cluster.register(node)
    await cluster.create_schema()
    flights, weather = tables()
    await cluster.create_table(flights, "dn-1", "dn-2")
    await cluster.create_table(weather, "dn-1")
    await cluster.create_table(info_of(DROPPED, "flights", "sales", 1), "dn-1")
    await cluster.drop_table(DROPPED)
    _fill(cluster)
    await cluster.move(await cluster.route_of(WEATHER, 0), "dn-2")
    cluster.write(weather, range(200, 230), "w3")
    await cluster.report_truth()
    answer = ServerReport(cluster_id=CLUSTER_ID, catalog_version=100)
    cluster.answers = {SERVER: answer}
    await _procedures(cluster)


def tables() -> tuple[TableInfo, TableInfo]:
    return info_of(FLIGHTS, "flights", "public", 2), info_of(WEATHER, "weather", "sales", 1)


def _fill(cluster: Cluster) -> None:
    """Rows in files, in sealed segments and in the log."""
    flights, weather = tables()
    for info, name in ((flights, "f"), (weather, "w")):
        cluster.write(info, range(100), f"{name}1")
        for number in range(info.partition.regions):
            cluster.regions[str(info.table_id << 32 | number)].maintenance.flush()
        cluster.write(info, range(90, 150), f"{name}2")
    cluster.reopen(str(FLIGHTS << 32))
    cluster.write(flights, range(150, 200), "f3")


async def _procedures(cluster: Cluster) -> None:
    """One that lives, and one that is over and was asked for with a key."""
    state = CreateSchema(info=SALES.model_copy(update={"name": "next", "schema_id": 1026}))
    living = RECORD.model_copy(
        update={
            "kind": CREATE_SCHEMA.name,
            "step": CREATE_SCHEMA.first,
            "phase": ProcedurePhase.FORWARD,
            "state": state.model_dump(mode="json"),
            "locks": CREATE_SCHEMA.locks(state),
            "trail": (),
            "timeline": (),
            "children": (),
            "parent": None,
            "error": None,
            "cancel": False,
        }
    )
    await cluster.put(ProcedureKey(CHILD), living)
    history = next(value for _, value in SAMPLES if isinstance(value, ProcedureHistory))
    await cluster.put(ProcedureHistoryKey(PROCEDURE), history)
    asked = Idempotency(procedure=PROCEDURE, fingerprint=DIGEST, at_ms=1)
    await cluster.put(IdempotencyKey(DIGEST), asked)
