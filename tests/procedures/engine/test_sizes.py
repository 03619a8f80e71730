"""Procedures that cannot end within the store's limits are refused before any effect (G6)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.log import TableAltered
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.model.tables import TableInfoKey, TableRouteKey
from keys.store.kv import TXN_BYTES_MAX, Compare
from metasrv_base.errors import MetaError, Refused
from procedures.engine import record_transitions
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.sizes import ROOM_BYTES
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    AddIndex,
    Operation,
    SetDefaultOperation,
)
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable
from procedures.kinds.alter.index_kinds import CREATE_INDEX
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.machine import Kind, ProcedureState
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.gates import Gate
from tests.procedures.harness.leader_office import Office, office
from tests.procedures.harness.scenarios import with_table
from tests.sim.loop import SimLoop, run


@dataclass
class Wide:
    """A cluster with one table, whose info and route a test makes as wide as it wants."""

    cluster: Cluster
    fence: Compare
    orders: list[str] = field(default_factory=list)

    async def widen(self, info_bytes: int, route_bytes: int = 0) -> None:
        """Before any server leads."""
        key, route_key = TableInfoKey(TABLE), TableRouteKey(TABLE)
        seen = await snapshot(self.cluster.kv, key, route_key, deadline_ms=DEADLINE_MS)
        info, route = seen.must(key), seen.must(route_key)
        last = info.columns[-1].model_copy(update={"default": "x" * info_bytes})
        columns = (*info.columns[:-1], last)
        wide = info.model_copy(update={"columns": columns, "version": info.version + 1})
        await self.cluster.change(self.fence, change(seen, TableAltered(info=wide)))
        first, *_ = route.region_routes
        borrows = tuple(f"/roots/{number:090d}" for number in range(route_bytes // 100))
        far = first.model_copy(update={"borrows": borrows})
        seen = await snapshot(self.cluster.kv, route_key, deadline_ms=DEADLINE_MS)
        await self.cluster.change(self.fence, change(seen, route_changed(route, (far,))))

    async def end(self, kind: Kind[Any], state: ProcedureState) -> ProcedureHistory:
        """Submits a procedure, waits until it has ended, and returns its history."""
        execute = self.cluster.plane.execute

        def heard(node: str, term: int, orders: object) -> object:
            self.orders.append(node)
            return execute(node, term, orders)  # type: ignore[arg-type]

        self.cluster.plane.execute = heard  # type: ignore[assignment,method-assign]
        client = ClientRequirements(submitted_by="anna", request_id="r", statement={})
        request = SubmitRequest(self.cluster.ids.procedure_id(), client, "f")
        manager = self.cluster.leader.manager
        submitted = await manager.submit(kind, state, request)
        found = await manager.wait(submitted.procedure, deadline_ms=600_000)
        assert isinstance(found, ProcedureHistory), found.live.last_error
        return found

    @property
    def version(self) -> int:
        follower = self.cluster.leader.follower
        assert follower is not None
        return follower.catalog.version


def wide(
    scenario: Callable[[Wide], Awaitable[None]], info_bytes: int = 0, route_bytes: int = 0
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_table(cluster, fence)
        at = Wide(cluster, fence)
        if info_bytes:
            await at.widen(info_bytes, route_bytes)
        await cluster.started()
        await scenario(at)

    run(main, 1)


def altering(*operations: Operation) -> AlterTable:
    return AlterTable(
        catalog="main",
        schema_name="public",
        name="t",
        table_id=TABLE,
        operations=operations,
    )


FAT = AddColumnOperation(name="fat", type="string", default="x" * 450_000)


@pytest.mark.parametrize(
    ("operation", "info_bytes", "route_bytes"),
    [
        (FAT, 0, 0),
        (AddColumnOperation(name="thin", type="string"), 660_000, 0),
        (AddColumnOperation(name="thin", type="string"), 420_000, 240_000),
    ],
    ids=["a wide default", "a wide table", "a wide table with a wide route"],
)
def test_given_an_alter_whose_last_state_is_too_large_then_nothing_is_published(
    operation: Operation, info_bytes: int, route_bytes: int
) -> None:
    async def scenario(at: Wide) -> None:
        version = at.version

        end = await at.end(ALTER_TABLE, altering(operation))

        assert end.outcome is ProcedureOutcome.FAILED
        assert end.last.error is not None
        assert end.last.error.code == "ddl-too-large"
        assert str(TXN_BYTES_MAX) in end.last.error.facts["limit"]
        assert at.orders == []
        assert at.version == version

    wide(scenario, info_bytes, route_bytes)


def test_given_an_index_for_a_table_that_is_too_wide_then_nothing_is_published() -> None:
    async def scenario(at: Wide) -> None:
        version = at.version
        index = AddIndex(name="i", columns=("id",), unique=False)

        end = await at.end(CREATE_INDEX, altering(index))

        assert end.last.error is not None
        assert end.last.error.code == "ddl-too-large"
        assert (at.orders, at.version) == ([], version)

    wide(scenario, 660_000)


def test_given_the_widest_default_that_is_taken_then_the_table_can_still_be_dropped() -> None:
    async def scenario(at: Wide) -> None:
        low, high = 0, 700_000
        while high - low > 5_000:
            middle = (low + high) // 2
            default = SetDefaultOperation(name="note", default="x" * middle)
            ended = await at.end(ALTER_TABLE, altering(default))
            fits = ended.outcome is ProcedureOutcome.SUCCEEDED
            assert fits or (ended.last.error and ended.last.error.code == "ddl-too-large")
            low, high = (middle, high) if fits else (low, middle)

        dropped = await at.end(DROP_TABLE, DROP)

        assert low > 300_000
        assert dropped.outcome is ProcedureOutcome.SUCCEEDED

    wide(scenario)


DROP = DropTable(catalog="main", schema_name="public", name="t", table_id=TABLE)


def test_given_a_table_that_grew_wide_when_dropped_then_its_removal_fits() -> None:
    """As a server of before could leave it: info and route no longer fit a transaction twice."""

    async def scenario(at: Wide) -> None:
        end = await at.end(DROP_TABLE, DROP)

        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert len(end.model_dump_json()) < 10_000

    wide(scenario, 560_000, 240_000)


def test_given_a_record_that_its_history_could_not_hold_when_submitted_then_it_is_refused() -> None:
    async def scenario(at: Office) -> None:
        manager, kind = at.server.manager, at.cluster.kinds["gate"]

        def request(size: int) -> SubmitRequest:
            client = ClientRequirements(
                submitted_by="a", request_id="r", statement={"body": "x" * size}
            )
            return SubmitRequest(at.cluster.ids.procedure_id(), client, "b" * 64)

        state = Gate(name="fat", locks=("table:1024",))
        await at.submit("a", "table:1024")
        await at.settle()
        with pytest.raises(Refused, match="ddl-too-large"):
            await manager.submit(kind, state, request(TXN_BYTES_MAX - ROOM_BYTES))

        widest = await manager.submit(kind, state, request(TXN_BYTES_MAX - ROOM_BYTES - 2_000))
        found: ActiveProcedure | ProcedureHistory = await manager.wait(
            widest.procedure, deadline_ms=3_600_000
        )

        assert isinstance(found, ProcedureHistory)
        assert found.last.error is not None
        assert found.last.error.code == "deadline-exceeded"
        assert not at.server.ended.is_set()

    office(scenario)


def test_given_an_error_with_long_facts_when_stored_then_they_are_cut() -> None:
    error = MetaError("internal", reasons={"n": "x" * 100_000}, name="t", text="y" * 100_000)

    stored = record_transitions.stored_error(error)

    assert len(stored.model_dump_json()) < 2 * record_transitions.FACTS_CHARS_MAX
    assert stored.facts["name"] == "t"
    assert "100000 characters" in stored.facts["text"]


def test_given_an_error_that_lists_rows_with_long_keys_when_stored_then_the_first_are_whole() -> (
    None
):
    rows = [{"constraint": "c", "key": {"id": "k" * 4_096}, "values": {}} for _ in range(100)]
    error = MetaError("check-violation", name="c", total=100, violations=rows)

    stored = record_transitions.stored_error(error)

    kept = stored.facts["violations"]
    assert 2 <= len(kept) < 5
    assert kept == rows[: len(kept)]
    assert (stored.facts["name"], stored.facts["total"]) == ("c", 100)
    assert len(stored.model_dump_json()) < 2 * record_transitions.FACTS_CHARS_MAX


def test_given_an_error_that_lists_many_short_rows_when_stored_then_a_list_of_them_is_kept() -> (
    None
):
    rows = [{"constraint": "c", "key": {"id": n}, "values": {"v": "x" * 200}} for n in range(100)]

    stored = record_transitions.stored_error(
        MetaError("check-violation", total=100, violations=rows)
    )

    assert len(stored.facts["violations"]) > 50
    assert stored.facts["violations"] == rows[: len(stored.facts["violations"])]
