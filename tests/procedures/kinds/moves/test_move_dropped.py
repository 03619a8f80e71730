"""A region of a dropped table moves: refusals, nodes that die, and what comes between."""

from collections.abc import Awaitable, Callable

import pytest

from keys.commit.change import change, dropped_route_changed
from keys.commit.txn import snapshot
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.model.removed import RemovedTableRouteKey
from keys.model.tables import RegionRoute, RegionState
from keys.store.kv import Compare
from metasrv_base.errors import Unavailable
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.moves.dropped_move import MoveDropped
from procedures.kinds.moves.move_dropped import MOVE_DROPPED
from procedures.kinds.tables.drop_table import DROP_TABLE
from procedures.kinds.tables.purge_table import PURGE_TABLE, PurgeTable
from procedures.kinds.tables.undrop_table import UNDROP_TABLE, UndropTable
from tests.fakes.cluster import DEADLINE_MS, Cluster
from tests.procedures.harness.copies.copied_tables import with_dropped_copied_table
from tests.procedures.harness.copies.moving_dropped import (
    FIRST,
    SECOND,
    THIRD,
    move,
    with_dropped_table_that_joins,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.kinds.runs import begun, drop, finish
from tests.sim.loop import SimLoop, run

MOVE = move(THIRD, "dn-1", "dn-2")
UNDROP = UndropTable(
    table_id=TABLE, catalog="main", schema_name="public", old_name="t", new_name="t"
)


async def submitted(cluster: Cluster, state: MoveDropped = MOVE) -> str:
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={})
    request = SubmitRequest(cluster.ids.procedure_id(), client, "")
    await cluster.leader.manager.submit(MOVE_DROPPED, state, request)
    return request.procedure


async def ended(cluster: Cluster, procedure: str) -> ProcedureHistory:
    history = await cluster.leader.manager.wait(procedure, deadline_ms=7_200_000)
    assert isinstance(history, ProcedureHistory)
    return history


async def cancel(cluster: Cluster, procedure: str) -> None:
    await cluster.leader.manager.control(procedure, Command(Control.CANCEL, "anna"))


def region_now(cluster: Cluster, region_id: str = THIRD) -> RegionRoute:
    assert cluster.leader.ports is not None
    route = cluster.leader.ports.applied().tables[TABLE].route
    return next(region for region in route.region_routes if region.region_id == region_id)


def are_open(cluster: Cluster, region_id: str = THIRD) -> list[str]:
    nodes = cluster.plane.nodes.values()
    return [node.node_id for node in nodes if region_id in {**node.serving, **node.following}]


def rows_at(cluster: Cluster, region: RegionRoute) -> int:
    return len(cluster.plane.storage.folders[region.root].rows)


async def put_region(cluster: Cluster, fence: Compare, **update: object) -> None:
    """The third region as *update* says."""
    key = RemovedTableRouteKey(TABLE)
    read = await snapshot(cluster.kv, key, deadline_ms=DEADLINE_MS)
    route = read.must(key).route
    region = next(each for each in route.region_routes if each.region_id == THIRD)
    changed = (region.model_copy(update=update),)
    await cluster.change(fence, change(read, dropped_route_changed(route, changed)))


async def with_a_lost_region(cluster: Cluster, fence: Compare) -> None:
    await with_dropped_table_that_joins(cluster, fence)
    await put_region(cluster, fence, state=RegionState.LOST)


async def with_a_borrowing_region(cluster: Cluster, fence: Compare) -> None:
    await with_dropped_table_that_joins(cluster, fence)
    await put_region(cluster, fence, borrows=("/disks/dn-3/regions/x",))


Given = Callable[[Cluster, Compare], Awaitable[None]]


@pytest.mark.parametrize(
    ("given", "state", "code"),
    [
        (with_a_lost_region, MOVE, "action-not-allowed"),
        (with_a_borrowing_region, MOVE, "action-not-allowed"),
        (with_dropped_table_that_joins, move(THIRD, "dn-1", "dn-9"), "node-not-eligible"),
    ],
)
def test_given_a_region_that_may_not_move_then_refused_and_it_stays_closed(
    given: Given, state: MoveDropped, code: str
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, given, {})

        end = await ended(cluster, await submitted(cluster, state))

        assert end.outcome is not ProcedureOutcome.SUCCEEDED
        assert end.last.error is not None
        assert end.last.error.code == code
        assert region_now(cluster).leader == "dn-1"
        assert region_now(cluster).state is not RegionState.OPENING
        assert not are_open(cluster)

    run(main, 1)


@pytest.mark.parametrize(
    "state",
    [
        MOVE.model_copy(update={"dropped_by": "another"}),
        move(FIRST, "dn-3", "dn-2"),
        move(str(int(THIRD) + 7), "dn-1", "dn-2"),
    ],
)
def test_given_another_drop_or_a_copy_that_is_gone_then_nothing_is_done(
    state: MoveDropped,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        before = [region_now(cluster, region) for region in (FIRST, SECOND, THIRD)]

        end = await ended(cluster, await submitted(cluster, state))

        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert [region_now(cluster, region) for region in (FIRST, SECOND, THIRD)] == before

    run(main, 1)


def test_given_a_copy_that_is_brought_up_then_the_region_is_open_without_any_lease() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_copied_table, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(60_000)

        assert are_open(cluster) == ["dn-1", "dn-2"]
        assert not [held for held in cluster.plane.leases if held[1] == THIRD]
        cluster.plane.joining.add(THIRD)
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert end.result["moved"]
        region = region_now(cluster)
        assert (region.leader, region.copies, region.epoch) == ("dn-2", (), 3)
        assert rows_at(cluster, region) == 2
        assert not are_open(cluster)

    run(main, 1)


def test_given_an_undrop_while_a_copy_is_brought_up_then_it_waits_for_nothing() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_copied_table, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(60_000)

        await finish(cluster, UNDROP_TABLE.name, UNDROP, {})
        end = await ended(cluster, procedure)

        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert end.result is not None
        assert not end.result["moved"]
        region = region_now(cluster)
        assert (region.leader, region.epoch, region.state) == ("dn-1", 3, RegionState.OPEN)
        assert cluster.plane.nodes["dn-1"].serving[THIRD].epoch == 3
        assert rows_at(cluster, region) == 2
        assert [copy.node for copy in region.copies] == ["dn-2"]

    run(main, 1)


async def left_by_the_source(cluster: Cluster) -> str:
    """A move past its point of no return, whose nodes do not close the region for now."""
    procedure = await submitted(cluster)
    for node in cluster.plane.nodes.values():
        node.refuses["close"] = Unavailable("not-ready")
    while "dn-1" in region_now(cluster).nodes:
        await cluster.clock.sleep_ms(100)
    return procedure


@pytest.mark.parametrize("is_dropped_again", [False, True])
def test_given_an_undrop_when_the_source_has_left_the_route_then_its_folder_goes(
    is_dropped_again: bool,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        root = region_now(cluster).root
        procedure = await left_by_the_source(cluster)
        await finish(cluster, UNDROP_TABLE.name, UNDROP, {})
        for node in cluster.plane.nodes.values():
            node.refuses.clear()
        if is_dropped_again:
            cluster.plane.nodes["dn-1"].refuses["discard"] = Unavailable("not-ready")
            await finish(cluster, DROP_TABLE.name, drop(), {})
            cluster.plane.nodes["dn-1"].refuses.clear()

        end = await ended(cluster, procedure)

        assert end.result is not None
        assert (end.result["moved"], end.result["stays"]) == (True, [])
        assert root not in cluster.plane.storage.folders
        assert rows_at(cluster, region_now(cluster)) == 2
        assert are_open(cluster) == ([] if is_dropped_again else ["dn-2"])

    run(main, 1)


def test_given_a_purge_while_a_copy_is_brought_up_then_no_folder_stays() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_copied_table, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(60_000)
        assert cluster.leader.ports is not None
        table = cluster.leader.ports.applied().tables[TABLE]

        await finish(cluster, PURGE_TABLE.name, PurgeTable.of(table), {})
        end = await ended(cluster, procedure)

        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert not cluster.plane.storage.folders
        assert not are_open(cluster)

    run(main, 1)


@pytest.mark.parametrize("node", ["dn-1", "dn-2"])
def test_given_a_node_that_dies_while_a_copy_is_brought_up_when_it_is_back_then_it_goes_on(
    node: str,
) -> None:
    """The leader that starts again opens at another epoch."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_copied_table, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(30_000)
        cluster.plane.nodes[node].die()
        await cluster.clock.sleep_ms(60_000)
        cluster.plane.nodes[node].alive = True
        await cluster.clock.sleep_ms(30_000)
        cluster.plane.joining.add(THIRD)

        end = await ended(cluster, procedure)

        assert end.result is not None
        assert end.result["moved"]
        assert region_now(cluster).leader == "dn-2"
        assert rows_at(cluster, region_now(cluster)) == 2
        assert not are_open(cluster)

    run(main, 1)


@pytest.mark.parametrize("node", ["dn-1", "dn-2"])
def test_given_a_node_that_is_dead_when_cancelled_then_the_region_is_where_it_was(
    node: str,
) -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_copied_table, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(30_000)
        cluster.plane.nodes[node].die()
        await cluster.clock.sleep_ms(60_000)

        await cancel(cluster, procedure)
        end = await ended(cluster, procedure)

        assert end.outcome is ProcedureOutcome.CANCELLED
        region = region_now(cluster)
        assert (region.leader, region.copies, region.state) == ("dn-1", (), RegionState.OPEN)
        assert rows_at(cluster, region) == 2
        assert not are_open(cluster)

    run(main, 1)


def test_given_a_learner_of_before_at_the_destination_then_it_is_made_anew() -> None:
    """The table was dropped while a copy of the second region was added."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        before = {copy.root for copy in region_now(cluster, SECOND).copies}

        end = await ended(cluster, await submitted(cluster, move(SECOND, "dn-3", "dn-2")))

        assert end.result is not None
        assert end.result["moved"]
        (copy,) = region_now(cluster, SECOND).copies
        assert copy.node == "dn-2"
        assert copy.root not in before
        assert not before & cluster.plane.storage.folders.keys()
        assert len(cluster.plane.storage.folders[copy.root].rows) == 2

    run(main, 1)


def test_given_a_member_on_a_dead_node_then_it_does_not_lead_before_it_is_back() -> None:
    """Its disk may be lost, and the source have the last rows."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        cluster.plane.nodes["dn-2"].die()
        await cluster.clock.sleep_ms(60_000)
        procedure = await submitted(cluster, move(FIRST, "dn-1", "dn-2"))
        await cluster.clock.sleep_ms(120_000)
        assert region_now(cluster, FIRST).leader == "dn-1"

        cluster.plane.nodes["dn-2"].alive = True
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert end.result["moved"]
        region = region_now(cluster, FIRST)
        assert (region.leader, region.copies) == ("dn-2", ())
        assert rows_at(cluster, region) == 2
        assert not are_open(cluster, FIRST)

    run(main, 1)


@pytest.mark.parametrize("dies", [False, True])
def test_given_an_added_copy_that_has_joined_when_cancelled_then_it_goes_unless_it_is_needed(
    dies: bool,
) -> None:
    """The leader's node is dead too: its disk may be lost, and that of the copy not."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        (copy,) = region_now(cluster, FIRST).copies
        added = {"to_root": copy.root, "is_added": True}
        cluster.plane.nodes["dn-2"].die()
        await cluster.clock.sleep_ms(60_000)
        state = move(FIRST, "dn-1", "dn-2").model_copy(update=added)
        procedure = await submitted(cluster, state)
        await cluster.clock.sleep_ms(30_000)
        if dies:
            cluster.plane.nodes["dn-1"].die()
            await cluster.clock.sleep_ms(60_000)

        await cancel(cluster, procedure)
        end = await ended(cluster, procedure)

        assert end.outcome is ProcedureOutcome.CANCELLED
        region = region_now(cluster, FIRST)
        assert (region.leader, region.state) == ("dn-1", RegionState.OPEN)
        assert region.copies == ((copy,) if dies else ())

    run(main, 1)


@pytest.mark.parametrize(
    ("lost", "source", "target", "leader", "copies"),
    [("dn-1", "dn-2", "dn-3", "dn-3", ["dn-1"]), ("dn-2", "dn-1", "dn-2", "dn-2", [])],
    ids=["leader", "next-leader"],
)
def test_given_a_leader_that_has_lost_its_files_then_another_copy_of_the_set_leads(
    lost: str, source: str, target: str, leader: str, copies: list[str]
) -> None:
    """Nobody fails over a region of a dropped table."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_dropped_table_that_joins, {})
        before = region_now(cluster, FIRST)
        roots = dict(zip(before.nodes, before.roots, strict=True))
        del cluster.plane.storage.folders[roots[lost]]

        end = await ended(cluster, await submitted(cluster, move(FIRST, source, target)))

        assert end.result is not None
        assert end.result["moved"]
        region = region_now(cluster, FIRST)
        assert (region.leader, [copy.node for copy in region.copies]) == (leader, copies)
        assert region.in_sync == (leader,)
        assert rows_at(cluster, region) == 2
        assert not are_open(cluster, FIRST)

    run(main, 1)
