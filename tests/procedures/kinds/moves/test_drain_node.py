"""A node with copies is drained: a few moves at once, and what becomes of the others."""

import pytest

from keys.commit.change import change
from keys.model.log import TablespaceCreated
from keys.model.placing.tablespaces import TablespaceInfo, TablespaceKey
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.store.kv import Compare
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.moves.arrivals import ARRIVALS_MAX
from procedures.kinds.moves.drain_node import DRAIN_NODE, DrainNode, DroppedTables
from procedures.kinds.moves.move_copy import MOVE_COPY
from procedures.kinds.tables.purge_table import PURGE_TABLE, PurgeTable
from procedures.kinds.tables.undrop_table import UNDROP_TABLE, UndropTable
from tests.fakes.cluster import Cluster
from tests.keys.commit.changes import absent
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.copies.draining import (
    DROPPED,
    with_a_dropped_table,
    with_a_dropped_table_that_moves,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import NODES, put_schema, region_ids, reserve_ids
from tests.procedures.kinds.copies.copy_lives import regions
from tests.procedures.kinds.runs import begun, finish
from tests.sim.loop import SimLoop, run

REGIONS = 7
STATE = DrainNode(node="dn-1", reason="a new kernel")


async def with_many_regions(cluster: Cluster, fence: Compare) -> None:
    """dn-1 leads them all, with a copy on dn-2 each: only dn-3 has room for another."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    copies = ((("dn-2", IN_SYNC),),) * REGIONS
    route = copied_route(TABLE, ("dn-1",) * REGIONS, copies)
    await put_copied_table(cluster, fence, copied_info(TABLE, "t", REGIONS), route)


async def submitted(cluster: Cluster, state: DrainNode = STATE) -> str:
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={})
    request = SubmitRequest(cluster.ids.procedure_id(), client, "")
    await cluster.leader.manager.submit(DRAIN_NODE, state, request)
    return request.procedure


def moving(cluster: Cluster) -> int:
    living = cluster.leader.manager.living()
    return sum(entry.held.record.kind == MOVE_COPY.name for _, entry in living)


def nodes_of(cluster: Cluster) -> set[str]:
    """All nodes that have a copy of a region."""
    return {
        node
        for each in regions(cluster)
        for node in (each["leader"], *(copy["node"] for copy in each["copies"]))
    }


async def ended(cluster: Cluster, procedure: str) -> ProcedureHistory:
    history = await cluster.leader.manager.wait(procedure, deadline_ms=7_200_000)
    assert isinstance(history, ProcedureHistory)
    return history


def test_given_many_regions_when_drained_then_few_copies_arrive_at_a_node_at_once() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_many_regions, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(30_000)
        assert moving(cluster) == ARRIVALS_MAX

        cluster.plane.joining |= set(region_ids(TABLE, REGIONS))
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert (end.result["moves"], end.result["left"]) == (REGIONS, [])
        assert nodes_of(cluster) == {"dn-2", "dn-3"}

    run(main, 1)


async def with_a_group(cluster: Cluster, fence: Compare) -> None:
    """Region 0 of each of seven tables is on dn-1 alone, and has regions of a tablespace beside it
    on dn-3, which has more regions than dn-2."""
    cluster.plane.add(*NODES)
    await reserve_ids(cluster, fence, 1100)
    await put_schema(cluster, fence, "sales")
    space = TablespaceInfo(tablespace_id=1_099, catalog="main", name="space", created_at_ms=0)
    await cluster.change(
        fence, change(absent(TablespaceKey("main", "space")), TablespaceCreated(info=space))
    )
    for number in range(REGIONS + 1):
        table = TABLE + number
        info = copied_info(table, f"t{number}", 1, replicas=1)
        grouped = info.model_copy(update={"tablespace_id": space.tablespace_id})
        leader = "dn-1" if number < REGIONS else "dn-3"
        await put_copied_table(cluster, fence, grouped, copied_route(table, (leader,), ((),)))


def test_given_a_partition_group_when_drained_then_its_members_end_on_one_node() -> None:
    """A few at once: the next of the group begins when one has ended."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_group, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(30_000)
        assert moving(cluster) == ARRIVALS_MAX, "dn-2 would have room for the others"

        for number in range(REGIONS):
            cluster.plane.joining |= set(region_ids(TABLE + number, 1))
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert (end.result["moves"], end.result["left"]) == (REGIONS, [])
        assert cluster.leader.ports is not None
        tables = cluster.leader.ports.applied().tables.values()
        leaders = [table.route.region_routes[0].leader for table in tables]
        assert leaders == ["dn-3"] * (REGIONS + 1)

    run(main, 1)


def test_given_a_drain_that_is_cancelled_then_no_more_moves_begin_and_those_begun_go_on() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_many_regions, {})
        procedure = await submitted(cluster)
        await cluster.clock.sleep_ms(30_000)

        await cluster.leader.manager.control(procedure, Command(Control.CANCEL, by="anna"))
        assert (await ended(cluster, procedure)).outcome is ProcedureOutcome.CANCELLED
        cluster.plane.joining |= set(region_ids(TABLE, REGIONS))
        assert await cluster.quiet()

        left = [each["leader"] for each in regions(cluster)].count("dn-1")
        assert left == REGIONS - ARRIVALS_MAX

    run(main, 1)


def test_given_no_other_node_when_drained_then_it_leads_nothing_and_its_copies_stay() -> None:
    """The only other node has a copy of each region: it leads them."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_many_regions, {})
        cluster.plane.nodes["dn-3"].disk_free_bytes = 0
        await cluster.clock.sleep_ms(10_000)

        end = await ended(cluster, await submitted(cluster))

        assert end.result is not None
        assert (end.result["moves"], len(end.result["left"])) == (0, REGIONS)
        assert {each["leader"] for each in regions(cluster)} == {"dn-2"}

    run(main, 1)


def waits_of(cluster: Cluster, procedure: str) -> list[tuple[str, str]]:
    entry = cluster.leader.manager.entry(procedure)
    return [] if entry is None else [(wait.kind, wait.holder) for wait in entry.live.waits]


@pytest.mark.parametrize("other_dies", [False, True])
def test_given_a_dropped_table_when_drained_then_it_ends_once_that_is_purged(
    other_dies: bool,
) -> None:
    """With `purge` it does so itself, where all nodes of the table live."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_dropped_table, {})
        dropped = DroppedTables.PURGE if other_dies else DroppedTables.WAIT
        if other_dies:
            cluster.plane.nodes["dn-2"].die()
            await cluster.clock.sleep_ms(60_000)
        procedure = await submitted(cluster, STATE.model_copy(update={"dropped": dropped}))
        await cluster.clock.sleep_ms(120_000)
        assert waits_of(cluster, procedure) == [("dropped_table", f"main.public.gone ({DROPPED})")]
        assert cluster.leader.ports is not None
        assert cluster.leader.ports.applied().led_by("dn-1") == 0

        if other_dies:
            cluster.plane.nodes["dn-2"].alive = True
        else:
            table = cluster.leader.ports.applied().tables[DROPPED]
            await finish(cluster, PURGE_TABLE.name, PurgeTable.of(table), {})
        end = await ended(cluster, procedure)

        assert end.outcome is ProcedureOutcome.SUCCEEDED
        assert DROPPED not in cluster.leader.ports.applied().tables

    run(main, 1)


def test_given_a_dropped_table_that_may_stay_when_drained_then_the_result_names_it() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_dropped_table, {})

        end = await ended(cluster, await submitted(cluster))

        assert end.result is not None
        assert (end.result["left"], end.result["dropped"]) == ([], [DROPPED])
        assert cluster.leader.ports is not None
        assert DROPPED in cluster.leader.ports.applied().tables

    run(main, 1)


def test_given_a_dropped_table_when_drained_then_its_regions_move_and_it_stays_dropped() -> None:
    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_dropped_table_that_moves, {})
        state = STATE.model_copy(update={"dropped": DroppedTables.MOVE})

        end = await ended(cluster, await submitted(cluster, state))

        assert end.result is not None
        assert (end.result["left"], end.result["moves"]) == ([], 3)
        assert "dropped" not in end.result
        assert cluster.leader.ports is not None
        table = cluster.leader.ports.applied().tables[DROPPED]
        assert table.dropped_at_ms is not None
        assert "dn-1" not in table.route.numbers_by_node()

    run(main, 1)


def test_given_a_dropped_region_that_cannot_move_when_drained_then_it_is_waited_for() -> None:
    """The only target has no room at first."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_dropped_table_that_moves, {})
        state = {"dropped": DroppedTables.MOVE, "targets": ("dn-3",)}
        cluster.plane.nodes["dn-3"].disk_free_bytes = 0
        await cluster.clock.sleep_ms(10_000)
        procedure = await submitted(cluster, STATE.model_copy(update=state))
        await cluster.clock.sleep_ms(600_000)
        assert ("dropped_table", f"main.public.gone ({DROPPED})") in waits_of(cluster, procedure)

        cluster.plane.nodes["dn-3"].disk_free_bytes = 1 << 40
        end = await ended(cluster, procedure)

        assert end.result is not None
        assert "dropped" not in end.result

    run(main, 1)


@pytest.mark.parametrize("dropped", [DroppedTables.WAIT, DroppedTables.MOVE])
def test_given_a_dropped_table_that_is_undropped_when_waited_for_then_its_regions_move_too(
    dropped: DroppedTables,
) -> None:
    """A learner of before the undrop joins the living region."""

    async def main(loop: SimLoop) -> None:
        cluster = await begun(loop, with_a_dropped_table, {})
        if dropped is DroppedTables.WAIT:
            cluster.plane.joining |= set(region_ids(DROPPED, 2))
        state = STATE.model_copy(update={"dropped": dropped})
        procedure = await submitted(cluster, state)
        await cluster.clock.sleep_ms(60_000)
        name = {"catalog": "main", "schema_name": "public", "old_name": "gone", "new_name": "t2"}
        back = UndropTable.model_validate({"table_id": DROPPED, **name})
        await finish(cluster, UNDROP_TABLE.name, back, {})
        cluster.plane.joining |= set(region_ids(DROPPED, 2))

        end = await ended(cluster, procedure)

        assert end.result is not None
        assert (end.result["left"], end.result["failover"]) == ([], None)
        assert cluster.leader.ports is not None
        assert cluster.leader.ports.applied().held_by("dn-1") == 0

    run(main, 1)
