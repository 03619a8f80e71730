"""Numbers of copies that change on a living table, on a whole server."""

from typing import Any

import pytest

from keys.model.placing.placements import DEFAULT_PLACEMENT_ID
from keys.model.records import ClientRequirements
from keys.model.tables import RegionRoute, TableInfo
from metasrv.leadership.copies.copy_keeper import AGAIN_MS, CopyKeeper
from metasrv.service.ddl.table_placing import copies_operation
from metasrv_base.wire.api.changes import SetCopies
from metasrv_base.wire.node.nodes import RegionStat
from procedures.commands.placement_commands import PlacementChanges
from procedures.engine.submit import SubmitRequest
from procedures.kinds.alter.alter_table import ALTER_TABLE, AlterTable
from procedures.kinds.namespaces.placements import ALTER_PLACEMENT, AlterPlacement
from procedures.machine import Kind, ProcedureState
from procedures.quorum import min_in_sync, minimum_of
from tests.metasrv.api.rig import TABLES, Server, beat, leader, spec
from tests.metasrv.nodes.samples import stat
from tests.metasrv.service.cluster.copied import change_of, results

T = f"{TABLES}/t"
NODES = ("dn-1", "dn-2", "dn-3", "dn-4")
WAIT = {"prefer": "wait=10"}
OUTAGE = "a disk died, and sales may lose a minute"


def now(server: Server) -> tuple[TableInfo, RegionRoute]:
    (table,) = server.state.follower.catalog.tables.values()
    (region,) = table.route.region_routes
    return table.info, region


async def created(server: Server, replicas: int = 1, **fields: Any) -> None:
    """A table whose regions have so many copies in sync. The API takes no more than one as yet, so
    others are added by the procedure that it would submit."""
    answer = await server.client.post(TABLES, json=spec("t", **fields), headers=WAIT)
    assert answer.status_code == 201, answer.text
    if replicas > 1:
        await set_copies(server, replicas=replicas)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)
        for _ in range(replicas - 1):
            await looked(server, keeper)


async def asked(server: Server, **numbers: Any) -> Any:
    """The answer of the API to a change of numbers."""
    operation = {"op": "set_copies", **numbers}
    return await server.client.post(f"{T}/alter", json={"operations": [operation]}, headers=WAIT)


async def set_copies(server: Server, **numbers: Any) -> None:
    """Carries out the alter that the API submits."""
    info, _ = now(server)
    placement = server.state.follower.catalog.placing.placement_of(info)
    operation = copies_operation(SetCopies(op="set_copies", **numbers), placement)
    state = AlterTable(
        catalog="main",
        schema_name="public",
        name="t",
        table_id=info.table_id,
        operations=(operation,),
    )
    await carried_out(server, ALTER_TABLE, state)


async def set_placement(server: Server, replicas: int) -> None:
    changes = PlacementChanges(replicas=replicas)
    state = AlterPlacement(name="default", placement_id=DEFAULT_PLACEMENT_ID, changes=changes)
    await carried_out(server, ALTER_PLACEMENT, state)


async def carried_out(server: Server, kind: Kind[Any], state: ProcedureState) -> None:
    client = ClientRequirements(submitted_by="ada", request_id="", statement={})
    request = SubmitRequest(server.state.ids.procedure_id(), client, fingerprint="")
    await server.term.manager.submit(kind, state, request)
    while server.term.manager.living():
        await server.term.manager.changed(deadline_ms=1_000)


def reports(server: Server) -> None:
    """Time passes, and every node reports what the route says of it."""
    server.clock.ahead_ms += AGAIN_MS
    _, region = now(server)
    here = dict(zip(region.nodes, region.roots, strict=True))
    for node in NODES:
        stats: list[RegionStat] = []
        if node in here:
            facts = {"root": here[node], "copies_version": region.copies_version}
            stats = [stat(region.region_id).model_copy(update={"epoch": region.epoch, **facts})]
        server.term.nodes.heartbeat(beat(node, server.clock.mono_ms(), stats))


async def looked(server: Server, keeper: CopyKeeper) -> None:
    """One look, and what it submits is over; every learner joins then."""
    reports(server)
    await keeper.look()
    while server.term.manager.living():
        await server.term.manager.changed(deadline_ms=1_000)
    _, region = now(server)
    for copy in region.copies:
        if copy.role.value == "learner":
            (joined,) = await results(server, region.leader, change_of(region, copy))
            assert joined["error"] is None


async def test_given_one_copy_when_three_are_asked_for_then_they_come_while_rows_are_written() -> (
    None
):
    async with leader(nodes=4) as server:
        await created(server)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)

        await set_copies(server, replicas=3)
        info, alone = now(server)
        await looked(server, keeper)
        _, two = now(server)
        await looked(server, keeper)
        _, three = now(server)
        await looked(server, keeper)

        assert (info.replicas, min_in_sync(info), minimum_of(info, alone)) == (3, 2, 1)
        assert (len(two.in_sync), minimum_of(info, two)) == (2, 2)
        assert (len(three.in_sync), minimum_of(info, three)) == (3, 2)
        assert now(server)[1] == three, "it has what its table says"


@pytest.mark.case("catalog 102")
async def test_given_three_copies_when_fewer_are_asked_for_then_they_go_one_by_one() -> None:
    async with leader(nodes=4) as server:
        await created(server, replicas=3)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)

        await set_copies(server, replicas=2)
        await looked(server, keeper)
        _, after_two = now(server)
        await set_copies(server, replicas=1)
        await looked(server, keeper)
        await looked(server, keeper)

        assert len(after_two.in_sync) == 2
        assert now(server)[1].copies == ()


async def test_given_a_placement_with_more_copies_then_tables_that_name_none_follow() -> None:
    async with leader(nodes=4) as server:
        await created(server)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)

        await set_placement(server, 2)
        await looked(server, keeper)
        await looked(server, keeper)
        info, region = now(server)
        await set_placement(server, 1)
        await looked(server, keeper)
        await looked(server, keeper)

        assert (info.replicas, info.own_copies, len(region.in_sync)) == (2, (), 2)
        info, region = now(server)
        assert (info.replicas, region.copies) == (1, ())
        body = (await server.client.get(T)).json()
        assert body["inherited"] == ["replicas", "min_in_sync"]


async def test_given_a_table_with_a_number_of_its_own_then_its_placement_changes_nothing() -> None:
    async with leader(nodes=4) as server:
        await created(server)
        await set_copies(server, replicas=1)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)
        await set_placement(server, 3)

        await looked(server, keeper)

        before, _ = now(server)
        await set_copies(server, replicas="default")
        after, _ = now(server)
        assert (before.replicas, before.own_copies) == (1, ("replicas",))
        assert (after.replicas, after.own_copies) == (3, ())


async def test_given_a_lower_minimum_then_it_needs_a_reason_which_the_log_keeps() -> None:
    async with leader(nodes=4) as server:
        await created(server, replicas=3)
        _, before = now(server)

        silent = await asked(server, min_in_sync=1)
        lowered = await asked(server, min_in_sync=1, reason=OUTAGE)
        info, region = now(server)
        version = server.state.follower.catalog.version
        log = (await server.client.get(f"/v1/catalog/versions/{version}")).json()
        raised = await asked(server, min_in_sync="default", replicas=None, reason=None)

        assert (silent.status_code, silent.json()["errors"][0]["pointer"]) == (
            422,
            "/operations/0/reason",
        )
        assert lowered.status_code == 200, lowered.text
        assert minimum_of(info, region) == 1
        assert region.copies_version == before.copies_version + 1, "leaders are told"
        assert OUTAGE in str(log)
        assert raised.status_code == 200, raised.text
        assert minimum_of(*now(server)) == 2


async def test_given_a_lowered_minimum_then_status_shows_rows_at_risk_until_it_is_raised() -> None:
    risk = 'metasrv_regions_at_risk{risk="min_in_sync_lowered"}'
    async with leader(nodes=4) as server:
        await created(server, replicas=3)
        keeper = CopyKeeper(server.term, server.clock, server.state.ids)
        await asked(server, min_in_sync=1, reason=OUTAGE)

        await looked(server, keeper)
        lowered = (await server.client.get("/metrics")).text
        await asked(server, min_in_sync=2)
        await looked(server, keeper)

        assert f"{risk} 1.0" in lowered
        assert f"{risk} 0.0" in (await server.client.get("/metrics")).text


@pytest.mark.case("catalog 101")
@pytest.mark.parametrize(
    ("numbers", "status", "code"),
    [
        ({"replicas": 2}, 422, "invalid-request"),
        ({"min_in_sync": 4}, 422, "invalid-request"),
        ({"replicas": 1}, 422, "invalid-request"),
        ({}, 422, "invalid-request"),
    ],
    ids=str,
)
async def test_given_numbers_that_cannot_be_when_altered_then_nothing_changes(
    numbers: dict[str, int], status: int, code: str
) -> None:
    async with leader(nodes=4) as server:
        await created(server, replicas=3)
        await asked(server, min_in_sync=3)
        before = now(server)

        answer = await asked(server, **numbers)

        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert now(server) == before
