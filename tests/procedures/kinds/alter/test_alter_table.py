"""Elements on their way while holders, leaders and regions come and go; cancelled anywhere."""

from collections.abc import Mapping

import pytest

from keys.commit.change import change, route_changed
from keys.commit.txn import snapshot
from keys.model.records import ClientRequirements, ProcedureOutcome
from keys.model.tables import RegionState, TableRouteKey
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, Refused
from procedures.engine.active_procedure import ActiveProcedure
from procedures.engine.control import Control, State
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_operations import (
    AddColumnOperation,
    DropColumnOperation,
    DropNotNull,
    Operation,
)
from procedures.kinds.alter.index_kinds import CREATE_INDEX
from procedures.kinds.failover.failover_table import FAILOVER_TABLE
from procedures.kinds.tables.drop_table import DROP_TABLE, DropTable
from tests.fakes.cluster import DEADLINE_MS, STOPPED_MS, Cluster
from tests.procedures.harness.ends import OTHER, TABLE, End, no_rest
from tests.procedures.harness.online import (
    ALTERS,
    INDEXES,
    all_altered,
    never_altered,
    told,
    with_empty_table,
    with_wide_table,
)
from tests.procedures.harness.scenarios import MOVED
from tests.procedures.harness.tables import region_ids
from tests.procedures.kinds.alter.online import HOLDER, REQUIRED, WAIT_MS, Change, online
from tests.sim.loop import SimLoop, run

REFUSED = "a write of a deposed leader was refused"

OPTIONAL = AddColumnOperation(name="extra", type="int64")
EACH: Mapping[str, tuple[tuple[Operation, ...], int]] = {
    "optional column": ((OPTIONAL,), 2),
    "required column": ((REQUIRED,), 3),
    "dropped column": ((DropColumnOperation(name="size"),), 2),
    "no more not null": ((DropNotNull(name="code"),), 2),
    "all at once": (ALTERS.operations, 3),
}
"""The operations, and the schema version at which they are in their last undoable state."""
STATES = [
    (name, version)
    for name, (_, last_undoable) in EACH.items()
    for version in range(2, last_undoable + 1)
]


@pytest.mark.parametrize(("name", "version"), STATES, ids=str)
@pytest.mark.case("online 67")
def test_given_any_undoable_state_when_cancelled_then_it_is_as_if_never_asked(
    name: str, version: int
) -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, version - 1)
        change = await at.submit(*EACH[name][0])
        await at.settle()
        seen = await at.info()

        cancelled = await change.control(Control.CANCEL)
        at.cluster.holders.lets_go(HOLDER, TABLE)

        assert isinstance(cancelled, ActiveProcedure)
        assert seen.schema_version == version
        assert (await change.end()).outcome is ProcedureOutcome.CANCELLED
        assert at.judge(ProcedureOutcome.CANCELLED, never_altered) == []

    online(scenario)


@pytest.mark.parametrize("name", EACH, ids=str)
@pytest.mark.case("online 68")
def test_given_no_return_when_cancelled_then_409_and_it_goes_on(name: str) -> None:
    async def scenario(at: Change) -> None:
        operations, last_undoable = EACH[name]
        at.cluster.holders.uses(HOLDER, TABLE, last_undoable)
        change = await at.submit(*operations)
        await at.settle()
        seen = await at.info()

        with pytest.raises(Conflict) as past:
            await change.control(Control.CANCEL)
        at.cluster.holders.lets_go(HOLDER, TABLE)

        assert seen.schema_version == last_undoable + 1
        assert past.value.code == "past-point-of-no-return"
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: []) == []
        assert {one.state for one in (await at.info()).columns} == {ElementState.PUBLIC}

    online(scenario)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.case("online 33", "online 69")
def test_given_any_state_when_paused_and_led_on_and_resumed_then_it_finishes(version: int) -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, version - 1)
        change = await at.submit(*ALTERS.operations)
        await at.settle()

        await change.control(Control.PAUSE)
        at.cluster.holders.lets_go(HOLDER, TABLE)
        await at.settle()
        paused = await at.info()
        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        await at.settle()
        still = await at.info()
        await change.control(Control.RESUME)

        assert paused.schema_version == still.schema_version == version
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, all_altered) == []

    online(scenario)


def test_given_a_holder_of_an_old_version_then_it_is_waited_for_by_name_and_only_there() -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(REQUIRED)
        await at.settle()
        other = await at.submit(OPTIONAL, table_id=OTHER, name="u")

        assert (await other.end()).outcome is ProcedureOutcome.SUCCEEDED
        (wait,) = change.entry().live.waits
        assert (wait.kind, wait.holder) == ("schema_lease", HOLDER)
        assert (await at.info()).schema_version == 2

        at.cluster.holders.lets_go(HOLDER, TABLE)
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED

    online(scenario)


def test_given_a_leader_that_dies_waiting_then_the_next_waits_for_the_published_version_again() -> (
    None
):
    """Case 16 of the model: without it, a holder two versions behind leaves an orphan."""

    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(REQUIRED)
        await at.settle()

        at.cluster.loop.kill(at.cluster.leader.node)
        await at.cluster.started("meta-2")
        await at.settle()
        waits = [wait.kind for wait in change.entry().live.waits]
        seen = await at.info()
        at.cluster.holders.lets_go(HOLDER, TABLE)

        assert (seen.schema_version, seen.schema_floor) == (2, 1)
        assert waits == ["schema_lease"]
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: []) == []

    online(scenario)


@pytest.mark.parametrize("version", [2, 3])
def test_given_a_node_that_dies_in_between_then_its_region_is_waited_for_and_has_the_floor(
    version: int,
) -> None:
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, version - 1)
        change = await at.submit(*ALTERS.operations)
        await at.settle()

        at.cluster.plane.nodes["dn-1"].die()
        at.cluster.holders.lets_go(HOLDER, TABLE)
        await at.settle()
        stands = await at.info()
        client = ClientRequirements(
            submitted_by="ops", request_id="r", statement={}, idempotency=None
        )
        request = SubmitRequest(at.cluster.ids.procedure_id(), client, "b")
        moving = MOVED.model_copy(update={"region_ids": region_ids(TABLE, 1)})
        await at.cluster.leader.manager.submit(FAILOVER_TABLE, moving, request)

        assert stands.schema_version == version
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED
        assert await at.cluster.quiet()
        assert at.judge(ProcedureOutcome.SUCCEEDED, lambda end: told(end, 5, 5)) == []

    online(scenario)


async def set_state(at: Change, state: RegionState) -> None:
    """Sets the state of the table's first region, as a failover would."""
    key = TableRouteKey(TABLE)
    seen = await snapshot(at.cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = seen.must(key)
    region = route.region_routes[0].model_copy(update={"state": state})
    await at.cluster.change(at.fence, change(seen, route_changed(route, (region,))))


@pytest.mark.parametrize(
    ("state", "code"),
    [(RegionState.OPENING, "not-ready"), (RegionState.LOST, "region-lost")],
)
@pytest.mark.case("catalog 92", "catalog 140")
def test_given_a_region_that_is_not_open_then_nothing_is_published_and_it_is_said(
    state: RegionState, code: str
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_wide_table(cluster, fence)
        at = Change(cluster, fence)
        await set_state(at, state)
        await cluster.started()
        change = await at.submit(REQUIRED)
        await at.settle()

        assert change.entry().live.last_error == code
        assert (await at.info()).schema_version == 1
        assert cluster.plane.told == []

        back = await cluster.elect("operator")
        await set_state(Change(cluster, back), RegionState.OPEN)
        await cluster.started("meta-2")
        assert (await change.end()).outcome is ProcedureOutcome.SUCCEEDED

    run(main, 1)


@pytest.mark.case("online 34")
def test_given_a_leader_that_sleeps_while_the_next_undoes_when_it_wakes_then_it_is_refused() -> (
    None
):
    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(*ALTERS.operations)
        await at.settle()
        seen = await at.info()
        old = at.cluster.leader

        at.cluster.loop.pause(old.node, STOPPED_MS)
        await at.cluster.started("meta-2")
        await change.control(Control.CANCEL)
        at.cluster.holders.lets_go(HOLDER, TABLE)
        ended = await change.end()
        undone = await at.info()
        refused_before = at.cluster.sometimes[REFUSED]
        asleep = not old.ended.is_set()
        await old.ended.wait()

        assert (seen.schema_version, asleep, refused_before) == (2, True, 0)
        assert ended.outcome is ProcedureOutcome.CANCELLED
        assert at.cluster.sometimes[REFUSED] == 1
        assert await at.info() == undone
        assert at.judge(ProcedureOutcome.CANCELLED, never_altered) == []

    online(scenario)


@pytest.mark.case("online 62")
@pytest.mark.case("catalog 91", "catalog 96")
def test_given_an_index_that_is_made_when_its_table_is_dropped_then_one_after_the_other() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = Cluster(loop)
        fence = await cluster.bootstrap()
        await with_empty_table(cluster, fence)
        await cluster.started()
        manager = cluster.leader.manager
        cluster.holders.uses(HOLDER, TABLE, 1)
        index = Change(cluster, fence, cluster.ids.procedure_id())
        drop = Change(cluster, fence, cluster.ids.procedure_id())
        client = ClientRequirements(
            submitted_by="anna", request_id="r", statement={}, idempotency=None
        )
        await manager.submit(CREATE_INDEX, INDEXES, SubmitRequest(index.procedure, client, "b"))
        await index.settle()
        table = DropTable(catalog="main", schema_name="public", name="t", table_id=TABLE)
        await manager.submit(DROP_TABLE, table, SubmitRequest(drop.procedure, client, "b"))
        await index.settle()
        meanwhile = [change.entry().state for change in (index, drop)]
        half = await index.info()

        cluster.holders.lets_go(HOLDER, TABLE)
        ends = [await change.end() for change in (index, drop)]

        def nothing_left(end: End) -> list[str]:
            serving = [node.serving for node in cluster.plane.nodes.values() if node.serving]
            return [*end.tables(), *map(str, serving), *no_rest(end)]

        assert meanwhile == [State.RUNNING, State.WAITING]
        assert [one.state for one in half.indexes] == [ElementState.DELETE_ONLY]
        assert [end.outcome for end in ends] == [ProcedureOutcome.SUCCEEDED] * 2
        assert index.judge(ProcedureOutcome.SUCCEEDED, nothing_left) == []

    run(main, 1)


@pytest.mark.case("online 75")
def test_given_several_changes_when_the_last_one_fails_for_ever_then_all_are_undone() -> None:
    """The last one takes a transition more than the others, and no region takes that."""

    async def scenario(at: Change) -> None:
        at.cluster.holders.uses(HOLDER, TABLE, 1)
        change = await at.submit(*ALTERS.operations[1:], REQUIRED)
        await at.settle()
        refuses = at.cluster.plane.nodes["dn-1"].refuses

        refuses["schema"] = Refused(reason="test")
        at.cluster.holders.lets_go(HOLDER, TABLE)
        await at.settle()
        half = await at.info()
        while change.entry().state is not State.ROLLING_BACK:
            await at.cluster.clock.sleep_ms(WAIT_MS)
        refuses.clear()
        ended = await change.end()

        assert (half.schema_version, half.schema_floor) == (2, 2)
        assert {one.state for one in half.columns} == {
            ElementState.PUBLIC,
            ElementState.WRITE_ONLY,
            ElementState.DELETE_ONLY,
        }
        assert ended.outcome is ProcedureOutcome.ROLLED_BACK
        assert ended.last.error is not None
        assert ended.last.error.code == "order-refused"
        assert at.judge(ProcedureOutcome.ROLLED_BACK, never_altered) == []

    online(scenario)
