"""A table that is dropped while it is used, given back, or led by what is dead or lost."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.catalogs import SchemaNameKey
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.model.tables import RegionState, TableInfo, TableRouteKey
from keys.store.kv import Compare
from metasrv_base.elements.states import ElementState
from procedures.engine.control import Control, State
from procedures.engine.submit import SubmitRequest
from procedures.kinds.registry import KINDS
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from procedures.kinds.tables.undrop_table import UndropTable
from procedures.machine import Kind
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.fakes.holders import LEASE_MS
from tests.procedures.harness.ends import TABLE, dropped, effects
from tests.procedures.harness.scenarios import DROP, with_dropped_table, with_table
from tests.procedures.kinds.alter.online import HOLDER, Change
from tests.sim.loop import SimLoop, run

CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={}, idempotency=None)


@dataclass
class Drop(Change):
    """A drop of table t, and who steers it."""

    async def begin(self) -> None:
        request = SubmitRequest(self.cluster.ids.procedure_id(), CLIENT, "b")
        self.procedure = request.procedure
        await self.cluster.leader.manager.submit(self.cluster.kinds["drop_table"], DROP, request)
        await self.settle()


async def set_regions(cluster: Cluster, fence: Compare, state: RegionState) -> None:
    key = TableRouteKey(TABLE)
    seen = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = seen.must(key)
    regions = tuple(one.model_copy(update={"state": state}) for one in route.region_routes)
    await cluster.change(fence, change(seen, route_changed(route, regions)))


def dropping(
    scenario: Callable[[Drop], Awaitable[None]],
    regions: RegionState = RegionState.OPEN,
    kind: Kind[DropTable] = DROP_TABLE,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop, {**KINDS, "drop_table": kind})
        fence = await cluster.bootstrap()
        await with_table(cluster, fence)
        await set_regions(cluster, fence, regions)
        await cluster.started()
        await scenario(Drop(cluster, fence))

    run(main, 1)


def without_version(info: TableInfo) -> TableInfo:
    return info.model_copy(update={"version": 0})


@pytest.mark.case("online 61")
def test_given_a_transaction_when_its_table_is_dropped_then_it_ends_first() -> None:
    async def scenario(at: Drop) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        await at.begin()
        meanwhile, entry = await at.info(), at.entry()
        (wait,) = entry.live.waits
        await at.settle()

        at.cluster.holders.lets_go(HOLDER, TABLE)
        ended = await at.end()

        assert (meanwhile.state, meanwhile.schema_version) == (ElementState.WRITE_ONLY, 1)
        assert (wait.kind, wait.holder, wait.transaction) == ("schema_lease", HOLDER, "t-1")
        (one,) = ended.last.transitions
        (shift,) = one.shifts
        assert (shift.what, shift.before, shift.after) == ("table", "public", "write-only")
        assert [late.holder for late in one.late] == [HOLDER]
        assert one.drained_at_ms is not None
        assert at.judge(ProcedureOutcome.SUCCEEDED, dropped) == []

    dropping(scenario)


@pytest.mark.case("online 67")
@pytest.mark.parametrize("state", RegionState)
def test_given_a_drop_that_waits_when_cancelled_then_the_table_is_back_and_no_node_was_asked(
    state: RegionState,
) -> None:
    async def scenario(at: Drop) -> None:
        before = await at.info()
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        await at.begin()

        await at.control(Control.CANCEL)
        ended = await at.end()

        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert without_version(await at.info()) == without_version(before)
        assert at.cluster.plane.told == []

    dropping(scenario, state)


@pytest.mark.parametrize("state", RegionState)
@pytest.mark.parametrize("is_dead", [False, True])
def test_given_regions_that_cannot_serve_when_dropped_then_it_waits_for_none_of_them(
    state: RegionState, is_dead: bool
) -> None:
    async def scenario(at: Drop) -> None:
        if is_dead:
            at.cluster.plane.nodes["dn-1"].die()
            await at.cluster.detected()
        began = at.cluster.clock.mono_ms()
        await at.begin()

        ended = await at.end()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.cluster.clock.mono_ms() - began < 1_000

    dropping(scenario, state)


def test_given_a_holder_that_is_dead_when_dropped_then_its_lease_is_waited_for_once() -> None:
    async def scenario(at: Drop) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        at.cluster.holders.dies(HOLDER)
        began = at.cluster.clock.mono_ms()
        await at.begin()

        ended = await at.end()

        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert LEASE_MS <= at.cluster.clock.mono_ms() - began < LEASE_MS + 1_000

    dropping(scenario)


def test_given_a_table_whose_audit_failed_when_dropped_then_nothing_is_in_its_way() -> None:
    async def scenario(at: Drop) -> None:
        at.cluster.holders.unsound.add(TABLE)
        await at.begin()

        assert (await at.end()).outcome is ProcedureOutcome.SUCCEEDED

    dropping(scenario)


@pytest.mark.case("online 78")
def test_given_a_drop_that_a_server_of_before_began_then_it_ends_as_it_would_have() -> None:
    """Its first step was the removal; it hid nothing, and waited for nobody."""
    first = {"remove": DROP_TABLE.steps["remove"], "close": DROP_TABLE.steps["close"]}

    async def scenario(at: Drop) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        await at.begin()

        assert (await at.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: effects(end, "table.dropped")) == []

    dropping(scenario, kind=replace(DROP_TABLE, steps=first))


def test_given_a_table_that_a_restore_has_purged_when_its_drop_goes_on_then_it_ends() -> None:
    """The backup was made behind its removal, and a restore keeps no dropped table."""
    last = replace(DROP_TABLE, steps={"close": DROP_TABLE.steps["close"]}, no_return="close")

    async def scenario(at: Drop) -> None:
        await at.begin()

        assert (await at.end()).outcome is ProcedureOutcome.SUCCEEDED

    dropping(scenario, kind=last)


def test_given_a_removal_that_waits_when_the_leader_is_replaced_then_the_next_one_goes_on() -> None:
    async def scenario(at: Drop) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        await at.begin()
        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        await at.settle()
        waiting, step = at.entry().state, at.entry().held.record.step

        at.cluster.holders.lets_go(HOLDER, TABLE)
        ended = await at.end()

        assert (waiting, step) == (State.RUNNING, "remove")
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, dropped) == []

    dropping(scenario)


@pytest.mark.parametrize("is_same", [True, False])
def test_given_another_schema_of_the_same_name_when_undropped_then_it_is_refused(
    is_same: bool,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_dropped_table(cluster, fence)
        server = await cluster.started()
        key = SchemaNameKey("main", "public")
        schema = (await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)).must(key)
        state = UndropTable(
            table_id=TABLE,
            catalog="main",
            schema_name="public",
            old_name="t",
            new_name="t",
            schema_id=schema.schema_id + (0 if is_same else 1),
        )
        request = SubmitRequest(cluster.ids.procedure_id(), CLIENT, "b")
        await server.manager.submit(cluster.kinds["undrop_table"], state, request)
        end = await server.manager.wait(request.procedure, deadline_ms=60_000)

        assert isinstance(end, ProcedureHistory)
        assert (end.outcome is ProcedureOutcome.SUCCEEDED) == is_same
        assert is_same or (end.last.error and end.last.error.code == "schema-conflict")

    run(main, 1)
