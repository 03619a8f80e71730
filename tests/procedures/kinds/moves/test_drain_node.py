"""A node with copies is drained: a few moves at once, and what becomes of the others."""

from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.store.kv import Compare
from procedures.engine.control import Command, Control
from procedures.engine.submit import SubmitRequest
from procedures.kinds.moves.drain_node import DRAIN_NODE, DrainNode
from procedures.kinds.moves.drain_plan import ARRIVALS_MAX
from procedures.kinds.moves.move_copy import MOVE_COPY
from tests.fakes.cluster import Cluster
from tests.procedures.harness.copies.copied_tables import (
    IN_SYNC,
    copied_info,
    copied_route,
    put_copied_table,
)
from tests.procedures.harness.ends import TABLE
from tests.procedures.harness.tables import NODES, put_schema, region_ids, reserve_ids
from tests.procedures.kinds.copies.copy_lives import regions
from tests.procedures.kinds.runs import begun
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


async def submitted(cluster: Cluster) -> str:
    client = ClientRequirements(submitted_by="anna", request_id="r", statement={})
    request = SubmitRequest(cluster.ids.procedure_id(), client, "")
    await cluster.leader.manager.submit(DRAIN_NODE, STATE, request)
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
