"""Cordon, uncordon and drain over HTTP; a drain to its end is in test_drains_copies.py."""

from typing import Any

from tests.metasrv.api.rig import TABLES, Server, beat, join, leader, registration, spec

WAIT = {"Prefer": "wait=10"}
WHY = {"reason": "a new disk"}
THREE = {"by": "hash", "columns": ["id"], "count": 3}


async def post(one: Server, path: str, body: Any = None, **headers: str) -> Any:
    return await one.client.post(f"/v1/nodes/{path}", json=body, headers=headers)


async def leaders(one: Server) -> set[str]:
    route = (await one.client.get(f"{TABLES}/t/route")).json()
    return {region["leader"] for region in route["regions"]}


def long_after(one: Server) -> None:
    """The grace of the election is over, and every node has been heard since."""
    one.clock.ahead_ms += 120_000
    for status in one.term.nodes.statuses():
        one.term.nodes.heartbeat(beat(status.node.node_id, 2))


async def test_given_a_cordoned_node_when_tables_are_made_then_they_go_elsewhere() -> None:
    async with leader(nodes=2) as one:
        cordoned = await post(one, "dn-1/cordon", WHY)
        await one.make(partition=THREE)

        assert cordoned.status_code == 200, cordoned.text
        assert cordoned.json()["cordon"]["reason"] == "a new disk"
        assert await leaders(one) == {"dn-2"}


async def test_given_all_cordoned_when_a_table_is_made_then_each_node_says_why() -> None:
    async with leader(nodes=1) as one:
        await post(one, "dn-1/cordon", WHY)
        refused = await one.client.post(TABLES, json=spec())
        lifted = await post(one, "dn-1/uncordon")
        made = await one.make()

        assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
        assert "cordoned" in refused.text
        assert lifted.json()["cordon"] is None
        assert made["name"] == "t"


async def test_given_a_cordoned_node_when_it_starts_again_then_it_is_cordoned_still() -> None:
    async with leader(nodes=1) as one:
        await post(one, "dn-1/cordon", WHY)
        await one.term.nodes.register(registration("dn-1", incarnation="i-2"))

        shown = (await one.client.get("/v1/nodes/dn-1")).json()

        assert (shown["incarnation"], shown["cordon"]["reason"]) == ("i-2", "a new disk")


async def test_given_a_drain_when_repeated_then_it_is_one_procedure() -> None:
    async with leader(nodes=2) as one:
        await one.make()
        long_after(one)
        one.nodes.gate.clear()

        first = await post(one, "dn-1/drain", WHY)
        second = await post(one, "dn-1/drain", WHY)

        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json()["id"] == second.json()["id"]
        one.nodes.gate.set()


async def test_given_nowhere_to_go_when_drained_then_refused_and_not_cordoned() -> None:
    async with leader(nodes=1) as one:
        await one.make()

        refused = await post(one, "dn-1/drain", WHY)
        unknown = await post(one, "dn-9/drain", WHY)

        assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
        assert unknown.status_code == 404
        assert (await one.client.get("/v1/nodes/dn-1")).json()["cordon"] is None


async def test_given_a_dry_run_when_draining_then_a_plan_and_no_cordon() -> None:
    async with leader(nodes=2) as one:
        await one.make()
        await join(one, "dn-3")

        plan = await one.client.post("/v1/nodes/dn-1/drain?dry_run=true", json=WHY)

        assert plan.status_code == 200, plan.text
        assert plan.json()["kind"] == "drain_node"
        assert (await one.client.get("/v1/nodes/dn-1")).json()["cordon"] is None
