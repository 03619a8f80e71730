"""POST /v1/nodes/{id}/drain: the copies of the node move, or the drain is refused."""

from typing import Any

import httpx
import pytest

from keys.model.records import ProcedureHistory
from keys.model.tables import RegionCopy, RegionRoute
from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.service.cluster.copied import (
    change_of,
    copied_region,
    region_now,
    results,
    roles,
)


async def drain(server: Server, node: str, *, dry_run: bool = False, **body: Any) -> httpx.Response:
    query = {"dry_run": "true"} if dry_run else {}
    request = {"reason": "a new kernel", **body}
    return await server.client.post(f"/v1/nodes/{node}/drain", json=request, params=query)


async def copy_on(server: Server, region: RegionRoute, node: str) -> RegionCopy:
    """The copy of *node*, once it was added."""
    while (copy := await next_copy(server, region)).node != node:
        await server.term.manager.changed(deadline_ms=1_000)
    return copy


async def next_copy(server: Server, region: RegionRoute) -> RegionCopy:
    """The last copy beside the leader, once no other is being added."""
    while True:
        kinds = [entry.held.record.kind for _, entry in server.term.manager.living()]
        copies = region_now(server, region).copies
        if copies and "add_copy" not in kinds:
            return copies[-1]
        await server.term.manager.changed(deadline_ms=1_000)


def is_cordoned(server: Server, node: str) -> bool:
    return server.term.nodes.entry(node).node.cordon is not None


async def test_given_a_node_with_a_copy_when_drained_then_it_moves_and_a_repeat_is_the_same() -> (
    None
):
    async with leader(nodes=4) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        started = await drain(server, in_sync.node)
        again = await drain(server, in_sync.node)
        assert (started.status_code, started.json()["kind"]) == (202, "drain_node"), started.text
        assert again.json()["id"] == started.json()["id"]
        assert is_cordoned(server, in_sync.node)
        new = await copy_on(server, region, "dn-4")
        joins = change_of(region_now(server, region), new)
        (joined,) = await results(server, region.leader, joins)
        assert joined["error"] is None
        end = await server.term.manager.wait(started.json()["id"], deadline_ms=60_000)

        assert isinstance(end, ProcedureHistory)
        assert end.result is not None
        assert (end.result["moves"], end.result["left"]) == (1, [])
        assert roles(region_now(server, region)) == {learner.node: "learner", "dn-4": "in-sync"}


async def test_given_only_copies_when_drained_then_others_lead_and_the_node_stays() -> None:
    async with leader(nodes=3) as server:
        await server.make(partition={"by": "hash", "columns": ["id"], "count": 3})
        (table,) = server.state.follower.catalog.tables.values()
        drained = [each for each in table.route.region_routes if each.leader == "dn-1"]

        started = await drain(server, "dn-1")
        for region in drained:
            copy = await next_copy(server, region)
            (joined,) = await results(server, "dn-1", change_of(region_now(server, region), copy))
            assert joined["error"] is None
        end = await server.term.manager.wait(started.json()["id"], deadline_ms=60_000)

        assert isinstance(end, ProcedureHistory)
        facts = {"node": "dn-1", "moves": len(drained), "left": [], "failover": None}
        assert end.result == facts
        assert {region_now(server, each).nodes for each in table.route.region_routes} == {
            ("dn-2",),
            ("dn-3",),
        }
        shown = (await server.client.get("/v1/nodes/dn-1")).json()
        assert (shown["state"], shown["leads"]) == ("alive", 0)
        assert is_cordoned(server, "dn-1")


@pytest.mark.parametrize(
    ("nodes", "targets"), [(3, []), (4, ["the learner"])], ids=["too few nodes", "no such target"]
)
async def test_given_too_few_nodes_for_the_copies_when_drained_then_refused_and_not_cordoned(
    nodes: int, targets: list[str]
) -> None:
    async with leader(nodes=nodes) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies
        named = [learner.node for _ in targets]

        for node in (in_sync.node, region.leader):
            refused = await drain(server, node, targets=named)

            problem = refused.json()
            assert (refused.status_code, problem["code"]) == (409, "node-not-eligible")
            assert problem["facts"]["reasons"][learner.node] == "holding a copy already"
            assert not is_cordoned(server, node)
        assert not server.term.manager.living()
        assert region_now(server, region) == region


async def test_given_a_dry_run_then_it_lists_the_moves_and_nothing_is_cordoned() -> None:
    async with leader(nodes=4) as server:
        region = await copied_region(server)

        plan = await drain(server, region.leader, dry_run=True)

        assert plan.status_code == 200, plan.text
        assert "move_copy" in plan.text
        assert "switch_leader" in plan.text
        assert not is_cordoned(server, region.leader)
        assert region_now(server, region) == region


@pytest.mark.parametrize(
    ("dropped", "kinds"),
    [("move", []), ("wait", ["dropped_table"]), ("keep", []), ("purge", [])],
)
async def test_given_a_dropped_table_when_a_drain_is_planned_then_it_waits_unless_told_not_to(
    dropped: str, kinds: list[str]
) -> None:
    async with leader(nodes=3) as server:
        await server.make()
        (table,) = server.state.follower.catalog.tables.values()
        (region,) = table.route.region_routes
        gone = await server.client.delete(f"{TABLES}/t", headers={"Prefer": "wait=10"})
        assert gone.status_code in (200, 204), gone.text

        plan = await drain(server, region.leader, dry_run=True, dropped=dropped)
        wrong = await drain(server, region.leader, dropped="forget")

        assert plan.status_code == 200, plan.text
        assert [each["kind"] for each in plan.json()["blockers"]] == kinds
        assert ("purge_table" in plan.text) is (dropped == "purge")
        assert ("move_dropped" in plan.text) is (dropped == "move")
        assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "/dropped")
