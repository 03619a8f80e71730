"""Procedures of any kind, begun and driven to their end on a fake cluster."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.records import ClientRequirements, ProcedureHistory
from keys.model.tables import RegionRoute, TableRouteKey
from keys.store.kv import Compare
from procedures.context import Context, Live
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_operations import RenameColumnOperation, SetOptionsOperation
from procedures.kinds.alter.alter_table import AlterTable
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.drop_table import DropTable
from procedures.kinds.tables.rename_table import RenameTable
from procedures.kinds.tables.undrop_table import UndropTable
from procedures.machine import Kind, ProcedureState
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.online import ADDS
from tests.sim.loop import SimLoop

Given = Callable[[Cluster, Compare], Awaitable[None]]


def drop(**changes: object) -> DropTable:
    state = DropTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
    return state.model_copy(update=changes)


def rename(**changes: object) -> RenameTable:
    state = RenameTable(
        catalog="main",
        schema_name="public",
        name="t",
        table_id=TABLE,
        new_schema="public",
        new_name="s",
    )
    return state.model_copy(update=changes)


def alter(*operations: SetOptionsOperation | RenameColumnOperation) -> AlterTable:
    return ADDS.model_copy(update={"operations": operations})


def undrop(**changes: object) -> UndropTable:
    state = UndropTable(
        table_id=TABLE, catalog="main", schema_name="public", old_name="t", new_name="t"
    )
    return state.model_copy(update=changes)


HERE = {"table_id": TABLE}


async def finish(
    cluster: Cluster, kind: str, state: ProcedureState, client: Mapping[str, object]
) -> ProcedureHistory:
    base = ClientRequirements(submitted_by="anna", request_id="r", statement={})
    request = SubmitRequest(cluster.ids.procedure_id(), base.model_copy(update=client), "")
    manager = cluster.leader.manager
    await manager.submit(cluster.kinds[kind], state, request)
    history = await manager.wait(request.procedure, deadline_ms=7_200_000)
    assert isinstance(history, ProcedureHistory)
    return history


def context(cluster: Cluster, client: ClientRequirements, step: str) -> Context:
    """The context of one attempt of *step*, outside of any procedure."""
    ports = cluster.leader.ports
    assert ports is not None
    return Context(ports, NoChildren(), "p", step, client, Live())


class NoChildren:
    async def submit(self, procedure: str, kind: str, state: dict[str, object]) -> None:
        raise AssertionError(procedure)

    async def end_of(self, procedure: str) -> None:
        return None

    async def under_way(self) -> tuple[str, ...]:
        return ()

    async def at_most(self, left: int) -> None:
        return

    async def wait(self, procedures: object) -> tuple[()]:
        return ()


async def begun(loop: SimLoop, given: Given, kinds: Mapping[str, Kind[Any]]) -> Cluster:
    cluster = Cluster(loop, {**KINDS, **kinds})
    await given(cluster, await cluster.bootstrap())
    await cluster.started()
    return cluster


async def move_route(cluster: Cluster) -> None:
    key = TableRouteKey(TABLE)
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = seen.must(key)
    changed: tuple[RegionRoute, ...] = tuple(
        region.model_copy(update={"leader": "dn-3", "epoch": region.epoch + 1})
        for region in route.region_routes
    )
    committer = cluster.leader.committer
    assert committer is not None
    await committer.commit(change(seen, route_changed(route, changed)))
