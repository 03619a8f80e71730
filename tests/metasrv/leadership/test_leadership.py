"""A term from its election to its end: one cluster is made, and all work ends with the term."""

import asyncio

import pytest
from structlog.testing import capture_logs

from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.cluster import ClusterKey, ClusterRecord
from keys.model.records import ClientRequirements, ProcedureHistory, ProcedureOutcome
from keys.value import decode
from metasrv_base.errors import NotLeader
from metasrv_base.wire.node.orders import DropRegion
from procedures.engine.submit import SubmitRequest
from procedures.kinds.namespaces.create_schema import CREATE_SCHEMA, CreateSchema
from tests.keys.store.faulty import Call, Fault, FaultyKv
from tests.metasrv.leadership.leading import Leading
from tests.metasrv.nodes.leader import beat, registration
from tests.metasrv.nodes.samples import stat
from tests.sim.loop import SimLoop, SimTask, run

UNKNOWN_REGION = "4402341478400"
CLIENT = ClientRequirements(submitted_by="anna", request_id="r", statement={})


def cluster_of(one: Leading) -> ClusterRecord | None:
    value = one.stored().get(bytes(ClusterKey()))
    return None if value is None else decode(ClusterRecord, value, key=str(ClusterKey()))


async def create_schema(one: Leading, name: str) -> object:
    """Its end. Raises as `Manager.submit`."""
    assert one.term is not None
    manager = one.term.manager
    info = SchemaInfo(schema_id=2_000, catalog="main", name=name, created_at_ms=0)
    asked = SubmitRequest(one.deps.ids.procedure_id(), CLIENT, "")
    await manager.submit(CREATE_SCHEMA, CreateSchema(info=info), asked)
    return await manager.wait(asked.procedure, deadline_ms=5_000)


async def first(loop: SimLoop) -> Leading:
    """The first leader of an empty prefix, when it has read its records."""
    one = Leading(loop)
    one.follow()
    one.lead(await one.elect())
    await one.clock.sleep_ms(1_000)
    assert one.term is not None
    assert one.term.ready.is_set()
    return one


def test_given_an_empty_prefix_when_led_then_the_cluster_is_made_and_the_next_leader_finds_it() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        one = await first(loop)
        made = cluster_of(one)
        two = Leading(loop, "ms-2", kv=one.kv)
        two.follow()
        two.lead(await two.elect())
        await two.clock.sleep_ms(1_000)

        assert one.term is not None
        assert two.term is not None
        assert made is not None
        assert made.cluster_id == one.term.cluster_id == two.term.cluster_id
        assert cluster_of(two) == made
        assert two.follower.catalog.version == 1

    run(main, 1)


def test_given_a_bootstrap_without_an_answer_when_looked_at_again_then_one_cluster() -> None:
    lost: list[Call] = []

    async def lose(call: Call) -> Fault:
        writes = () if call.request is None else call.request.writes
        if lost or all(write.key != bytes(ClusterKey()) for write in writes):
            return Fault.NONE
        lost.append(call)
        return Fault.ANSWER_LOST

    async def main(loop: SimLoop) -> None:
        one = Leading(loop, reached_by=lambda kv: FaultyKv(kv, lose))
        one.follow()
        one.lead(await one.elect())
        await one.clock.sleep_ms(1_000)

        made = cluster_of(one)
        assert len(lost) == 1
        assert made is not None
        assert one.term is not None
        assert one.term.cluster_id == made.cluster_id
        assert one.follower.catalog.version == 1

    run(main, 1)


def test_given_keys_of_others_under_the_prefix_when_led_then_no_cluster_and_it_is_told() -> None:
    async def main(loop: SimLoop) -> None:
        one = Leading(loop)
        await one.put({b"__table_info/7": b"{}"})

        with capture_logs() as logs:
            one.follow()
            one.lead(await one.elect())
            await one.clock.sleep_ms(60_000)

        assert one.term is None
        assert cluster_of(one) is None
        assert "prefix_not_empty" in {line["event"] for line in logs}

    run(main, 1)


def test_given_a_leader_then_nodes_and_regions_hear_from_it_and_it_changes_the_catalog() -> None:
    async def main(loop: SimLoop) -> None:
        one = await first(loop)
        assert one.term is not None
        joined = await one.term.nodes.register(registration())
        here = {"cluster_id": joined.cluster_id}

        answer = one.term.nodes.heartbeat(beat(1, stat(UNKNOWN_REGION)).model_copy(update=here))
        ended = await create_schema(one, "s")

        (order,) = answer.instructions
        assert isinstance(order, DropRegion)
        assert (answer.term, order.region_id) == (one.term.number, UNKNOWN_REGION)
        assert isinstance(ended, ProcedureHistory)
        assert ended.outcome is ProcedureOutcome.SUCCEEDED
        assert bytes(SchemaNameKey("main", "s")) in one.stored()
        assert one.follower.catalog.version == 2

    run(main, 1)


def test_given_a_leader_that_another_replaced_when_it_writes_then_its_term_ends_with_all_work() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        one = await first(loop)
        await Leading(loop, "ms-2", kv=one.kv).elect()

        with pytest.raises(NotLeader):
            await create_schema(one, "s")
        await one.clock.sleep_ms(1_000)

        assert one.term is None
        assert one.ended is not None
        assert "NotLeader" in one.ended
        running = [task for task in asyncio.all_tasks() if isinstance(task, SimTask)]
        left = [task.coro.__qualname__ for task in running if task.node == one.name]
        assert left == ["UpdateLog.follow"]

    run(main, 1)


def test_given_a_server_whose_catalog_lags_when_it_wins_then_it_leads_once_it_has_all_of_it() -> (
    None
):
    async def main(loop: SimLoop) -> None:
        one = await first(loop)
        two = Leading(loop, "ms-2", kv=one.kv)
        await two.follower.log.load()
        await create_schema(one, "s")

        two.lead(await two.elect())
        await two.clock.sleep_ms(1_000)
        early, known = two.term, two.follower.catalog.version
        two.follow()
        await two.clock.sleep_ms(1_000)

        assert (early, known) == (None, 1)
        assert two.term is not None
        assert two.follower.catalog.version == 2
        assert ("main", "s") in two.follower.catalog.schemas

    run(main, 1)
