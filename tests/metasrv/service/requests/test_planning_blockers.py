"""Blockers that a plan lists: locks and their holders, places, the queue, a pause of all."""

from typing import Any

import pytest

from tests.metasrv.api.held_up import create_held_up
from tests.metasrv.api.rig import TABLES, Server, TermLimits, leader, spec
from tests.metasrv.api.routes.failover_requests import ask
from tests.metasrv.service.ddl.alters import ADD

DRY = "?dry_run=true"


async def plan_of_a_create(one: Server, name: str) -> dict[str, Any]:
    answer = await one.client.post(TABLES + DRY, json=spec(name))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def plan_of_a_failover(one: Server, node: str) -> dict[str, Any]:
    answer = await one.client.post(
        "/v1/failovers" + DRY, json={"reason": "test", "node_id": node, "force": True}
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def blockers(plan: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(one["kind"], one["holder"], one["waits"]) for one in plan["blockers"]]


@pytest.mark.parametrize("reason", ["an upgrade", None])
async def test_given_a_pause_of_all_when_planned_then_it_is_named_with_its_reason(
    reason: str | None,
) -> None:
    async with leader() as one:
        body = {"paused": True, "reason": reason}
        assert (await one.client.put("/v1/cluster/procedures", json=body)).status_code == 200

        paused = await plan_of_a_create(one, "u")
        await one.client.put("/v1/cluster/procedures", json={"paused": False})
        later = await plan_of_a_create(one, "u")

        assert blockers(paused) == [("maintenance", reason or "all procedures are paused", True)]
        assert paused["complete"]
        assert blockers(later) == []


async def test_given_a_holder_that_is_paused_when_planned_then_time_alone_will_not_help() -> None:
    async with leader() as one:
        where = await create_held_up(one)
        before = await plan_of_a_create(one, "t")
        holder = (await one.client.post(f"{where}/pause")).json()["id"]

        after = await plan_of_a_create(one, "t")

        assert {(kind, who) for kind, who, _ in blockers(before)} == {("lock", holder)}
        assert {(kind, who) for kind, who, _ in blockers(after)} == {("paused", holder)}
        assert after["waits_for"] == [holder]
        one.nodes.gate.set()


async def test_given_no_place_to_run_when_planned_then_it_would_wait_for_one() -> None:
    async with leader() as one:
        await one.client.put("/v1/settings/running_max", json={"value": 1})
        await create_held_up(one)

        crowded = await plan_of_a_create(one, "u")
        await one.client.put("/v1/settings/running_max", json={"value": 2})
        roomy = await plan_of_a_create(one, "u")

        assert blockers(crowded) == [("admission", "running procedures", True)]
        assert blockers(roomy) == []
        one.nodes.gate.set()


async def test_given_a_full_queue_when_planned_then_it_would_be_refused_as_the_change_is() -> None:
    async with leader(of_term=TermLimits(queue_max=1)) as one:
        await create_held_up(one)

        plan = await plan_of_a_create(one, "u")
        done = await one.client.post(TABLES, json=spec("u"))

        assert blockers(plan) == [("admission", "too-many-procedures", False)]
        assert (done.status_code, done.json()["code"]) == (429, "too-many-procedures")
        one.nodes.gate.set()


async def test_given_a_lock_that_a_child_wants_when_planned_then_the_child_shows_it() -> None:
    async with leader(nodes=1) as one:
        await one.make()
        await one.client.delete(f"{TABLES}/t", headers={"Prefer": "wait=10"})
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        undrop = (await one.client.post(f"{TABLES}/t/undrop", json={})).json()["id"]
        await one.nodes.reached.wait()

        plan = await plan_of_a_failover(one, "dn-1")

        (child,) = plan["children"]
        assert ("lock", undrop, True) in blockers(child)
        assert plan["waits_for"] == [undrop]
        one.nodes.gate.set()


async def test_given_a_drop_that_waits_when_a_failover_is_planned_then_it_is_not_in_the_way() -> (
    None
):
    async with leader(nodes=1) as one:
        await one.make()
        one.nodes.reached.clear()
        one.nodes.gate.clear()
        await one.client.post(f"{TABLES}/t/alter", json={"operations": [ADD]})
        await one.nodes.reached.wait()
        waiting = (await one.client.delete(f"{TABLES}/t")).json()
        planned = await plan_of_a_failover(one, "dn-1")

        done = await ask(one, node_id="dn-1", force=True)

        assert waiting["state"] == "waiting"
        assert planned["waits_for"] == []
        assert done.status_code == 202
        one.nodes.gate.set()
