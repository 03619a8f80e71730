"""POST /v1/regions/{id}/copies/{node}/move: the copy moves, or the request is refused at once."""

from typing import Any

import httpx
import pytest

from keys.model.records import ProcedureHistory
from keys.model.tables import RegionCopy, RegionRoute
from metasrv.leadership.copies.copy_keeper import CopyKeeper
from tests.metasrv.api.rig import Server, beat, leader
from tests.metasrv.service.cluster.copied import (
    change_of,
    copied_region,
    region_now,
    results,
    roles,
)


async def move(
    server: Server, region: RegionRoute, node: str, *, dry_run: bool = False, **body: Any
) -> httpx.Response:
    path = f"/v1/regions/{region.region_id}/copies/{node}/move"
    query = {"dry_run": "true"} if dry_run else {}
    return await server.client.post(path, json={"reason": "test", **body}, params=query)


async def copy_on(server: Server, region: RegionRoute, node: str) -> RegionCopy:
    """The copy of *node*, once it was added."""
    while True:
        kinds = [entry.held.record.kind for _, entry in server.term.manager.living()]
        copies = [copy for copy in region_now(server, region).copies if copy.node == node]
        if copies and "add_copy" not in kinds:
            return copies[0]
        await server.term.manager.changed(deadline_ms=1_000)


@pytest.mark.case("greptime 115")
async def test_given_a_copy_that_moves_then_the_new_one_joins_first_and_no_loop_removes_one() -> (
    None
):
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        source, learner = region.copies

        started = await move(server, region, source.node)
        assert started.status_code == 202, started.text
        new = await copy_on(server, region, "dn-4")
        during = region_now(server, region)
        server.clock.ahead_ms += 60_000
        await CopyKeeper(server.term, server.clock, server.state.ids).look()
        assert region_now(server, region) == during, "one too many, since one moves"
        for number in range(1, 5):  # alive, although a minute has gone by
            server.term.nodes.heartbeat(beat(f"dn-{number}", sequence=2))

        (joined,) = await results(server, region.leader, change_of(during, new))
        assert joined["error"] is None
        end = await server.term.manager.wait(started.json()["id"], deadline_ms=60_000)

        assert isinstance(end, ProcedureHistory)
        assert end.result is not None
        assert (end.result["moved"], end.result["to"]) == (True, "dn-4")
        assert roles(region_now(server, region)) == {learner.node: "learner", "dn-4": "in-sync"}


async def test_given_a_dry_run_of_a_move_then_it_says_that_a_copy_is_waited_for() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)

        answer = await move(server, region, region.copies[0].node, dry_run=True, to_node="dn-4")

        assert answer.status_code == 200, answer.text
        assert "dn-4, which is to be in sync" in answer.text
        assert region_now(server, region) == region


@pytest.mark.parametrize(
    ("node", "body", "status", "code"),
    [
        ("in-sync", {"to_node": "leader"}, 409, "action-not-allowed"),
        ("in-sync", {"to_node": "learner"}, 409, "action-not-allowed"),
        ("leader", {"to_node": "learner"}, 409, "action-not-allowed"),
        ("in-sync", {"to_node": "in-sync"}, 409, "node-not-eligible"),
        ("in-sync", {"to_node": "dn-9"}, 409, "node-not-eligible"),
        ("in-sync", {}, 409, "node-not-eligible"),
        ("in-sync", {"to_node": "no node"}, 422, "invalid-identifier"),
        ("in-sync", {"reason": ""}, 422, "invalid-request"),
        ("dn-9", {}, 404, "not-found"),
    ],
)
@pytest.mark.case("greptime 127")
async def test_given_a_move_that_cannot_be_when_asked_then_refused_at_once(
    node: str, body: dict[str, Any], status: int, code: str
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies
        names = {"leader": region.leader, "in-sync": in_sync.node, "learner": learner.node}
        named = {key: names.get(value, value) for key, value in body.items()}

        answer = await move(server, region, names.get(node, node), **named)

        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert not server.term.manager.living()
        assert region_now(server, region) == region


async def test_given_a_copy_that_may_lead_when_another_is_to_take_its_place_then_refused() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        copy, learner = region.copies
        path, wait = f"/v1/regions/{region.region_id}/copies", {"prefer": "wait=60"}
        await server.client.post(path, json={"reason": "test"}, headers=wait)
        more = region_now(server, region)
        await results(server, region.leader, change_of(more, copy, eligible=True))

        answer = await move(server, region, learner.node, to_node=copy.node)

        assert (answer.status_code, answer.json()["code"]) == (409, "action-not-allowed")
        assert "alone in its set" in answer.text


async def test_given_a_region_with_one_copy_too_many_when_one_is_to_move_then_replica_limit() -> (
    None
):
    async with leader(nodes=5) as server:
        region = await copied_region(server)
        path = f"/v1/regions/{region.region_id}/copies"
        added = await server.client.post(
            path, json={"reason": "test"}, headers={"prefer": "wait=60"}
        )
        assert added.status_code == 200, added.text

        answer = await move(server, region, region.copies[0].node)

        assert (answer.status_code, answer.json()["code"]) == (409, "replica-limit")
