"""POST /v1/failovers: what is refused, what is begun, and maintenance."""

import asyncio
from typing import Any

import pytest

from tests.metasrv.api.held_up import end_of
from tests.metasrv.api.rig import TABLES, Server, beat, leader, spec
from tests.metasrv.api.routes.failover_requests import ask

WAIT = {"Prefer": "wait=10"}


async def with_a_dead_node(one: Server) -> dict[str, Any]:
    """A table of three regions on three nodes, of which dn-1 has fallen silent for long."""
    made = await one.make(partition={"by": "hash", "columns": ["id"], "count": 3})
    one.clock.ahead_ms += 120_000
    for node in ("dn-2", "dn-3"):
        one.term.nodes.heartbeat(beat(node, 2))
    return made


def region_of(table: dict[str, Any], node: str) -> str:
    (found,) = [r["region_id"] for r in table["regions"] if r["leader"] == node]
    return str(found)


@pytest.mark.case("input 69")
async def test_given_a_living_node_then_409_unless_forced() -> None:
    async with leader() as one:
        await one.make()

        alive = await ask(one, node_id="dn-1")
        forced = await ask(one, node_id="dn-1", force=True, headers=WAIT)

        assert (alive.status_code, alive.json()["code"]) == (409, "node-still-alive")
        assert forced.status_code == 200, forced.text
        assert forced.json()["kind"] == "failover_node"
        route = (await one.client.get(f"{TABLES}/t/route")).json()
        assert route["regions"][0]["leader"] == "dn-2"


async def test_given_a_dead_node_when_asked_twice_then_the_same_procedure() -> None:
    async with leader(nodes=3) as one:
        await with_a_dead_node(one)
        one.nodes.gate.clear()

        first = await ask(one, node_id="dn-1")
        second = await ask(one, node_id="dn-1", headers={"Idempotency-Key": "other"})

        assert (first.status_code, second.status_code) == (202, 202)
        assert first.json()["id"] == second.json()["id"]
        one.nodes.gate.set()
        listed = (await one.client.get("/v1/failovers")).json()["procedures"]
        assert first.json()["id"] in [body["id"] for body in listed]


@pytest.mark.case("input 71")
async def test_given_regions_when_failed_over_then_only_they_move() -> None:
    async with leader(nodes=3) as one:
        table = await with_a_dead_node(one)
        region = region_of(table, "dn-1")

        stale = await ask(one, region_ids=[region], expected_epoch=7)
        done = await ask(one, region_ids=[region], targets=["dn-3"], expected_epoch=1, headers=WAIT)

        assert (stale.status_code, stale.json()["code"]) == (412, "epoch-mismatch")
        assert done.status_code == 200, done.text
        shown = (await one.client.get(f"/v1/regions/{region}")).json()
        assert (shown["leader"], shown["epoch"], shown["table_id"]) == ("dn-3", 2, table["id"])


async def test_given_regions_of_two_leaders_then_a_list_which_a_repetition_finds() -> None:
    async with leader(nodes=3) as one:
        made = await one.make(partition={"by": "hash", "columns": ["id"], "count": 3})
        regions = [region_of(made, node) for node in ("dn-1", "dn-2")]
        key = {"Idempotency-Key": "k"} | WAIT

        first = await ask(one, region_ids=regions, force=True, headers=key)
        again = await ask(one, region_ids=regions, force=True, headers=key)

        assert first.status_code == 200, first.text
        assert len(first.json()["procedures"]) == 2
        assert again.json() == first.json()
        assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.case("input 70")
async def test_given_a_region_that_moves_already_when_asked_again_then_queued_or_409() -> None:
    async with leader(nodes=3) as one, asyncio.timeout(120):
        await one.make("busy")
        region = (await one.client.get("/v1/regions")).json()["regions"][0]["region_id"]
        one.nodes.gate.clear()
        first = await ask(one, region_ids=[region], force=True)

        refused = await ask(one, "?on_conflict=fail", region_ids=[region], force=True)
        queued = await ask(one, region_ids=[region], force=True)

        assert (refused.status_code, refused.json()["code"]) == (409, "object-locked")
        assert refused.json()["procedure_id"] == first.json()["id"]
        assert queued.status_code == 202
        one.nodes.gate.set()
        ended = await end_of(one, f"/v1/procedures/{queued.json()['id']}")
        assert ended["done"]


@pytest.mark.case("input 68")
async def test_given_targets_that_cannot_then_each_says_why() -> None:
    async with leader(nodes=4) as one:
        table = await with_a_dead_node(one)
        region = region_of(table, "dn-2")
        one.term.nodes.heartbeat(beat("dn-4", 2))
        await one.client.post("/v1/nodes/dn-4/cordon", json={"reason": "a new kernel"})

        unknown = await ask(one, region_ids=[region], targets=["dn-9"], force=True)
        dead = await ask(one, region_ids=[region], targets=["dn-1"], force=True)
        cordoned = await ask(one, region_ids=[region], targets=["dn-4"], force=True)
        same = await ask(one, region_ids=[region], targets=["dn-2"], force=True)

        assert (unknown.status_code, unknown.json()["code"]) == (404, "not-found")
        assert (dead.status_code, dead.json()["code"]) == (409, "node-not-eligible")
        assert (cordoned.status_code, cordoned.json()["code"]) == (409, "node-not-eligible")
        assert (same.status_code, same.json()["code"]) == (422, "invalid-request")


async def test_given_too_many_dead_nodes_then_the_guard_holds() -> None:
    async with leader(nodes=3) as one:
        await one.make(partition={"by": "hash", "columns": ["id"], "count": 3})
        one.clock.ahead_ms += 120_000
        one.term.nodes.heartbeat(beat("dn-3", 2))

        answer = await ask(one, node_id="dn-1")

        assert (answer.status_code, answer.json()["code"]) == (409, "failover-guard")


async def test_given_maintenance_then_failover_needs_force() -> None:
    async with leader(nodes=3) as one:
        await with_a_dead_node(one)
        on = await one.client.put(
            "/v1/cluster/maintenance", json={"enabled": True, "reason": "disks"}
        )

        refused = await ask(one, node_id="dn-1")
        forced = await ask(one, node_id="dn-1", force=True, headers=WAIT)

        assert (on.status_code, on.json()["version"]) == (200, 1)
        assert (refused.status_code, refused.json()["code"]) == (409, "maintenance-mode")
        assert "disks" in refused.json()["detail"]
        assert forced.status_code == 200
        settings = (await one.client.get("/v1/settings")).json()["settings"]
        shown = {setting["name"]: setting["value"] for setting in settings}["maintenance"]
        assert (shown["enabled"], shown["reason"]) == (True, "disks")
        internal = (await one.client.get("/internal/v1/settings")).json()["settings"]
        assert internal == settings


async def test_given_no_node_then_a_create_says_why_at_once() -> None:
    async with leader(nodes=0) as one:
        answer = await one.client.post(TABLES, json=spec())

        assert (answer.status_code, answer.json()["code"]) == (409, "node-not-eligible")


async def test_given_what_the_server_says_of_itself_then_it_is_complete() -> None:
    async with leader() as one:
        await one.make()

        metrics = (await one.client.get("/metrics")).text
        version = (await one.client.get("/version")).json()
        ready = await one.client.get("/readyz")

        assert f"metasrv_catalog_version {float(one.version)}" in metrics
        assert 'metasrv_requests_total{method="POST",route=' in metrics
        assert 'metasrv_nodes{state="alive"} 2.0' in metrics
        assert "metasrv_leader 1.0" in metrics
        ended = 'metasrv_procedures_total{kind="create_table",outcome="succeeded"} 1.0'
        assert ended in metrics
        assert 'metasrv_procedure_duration_seconds_count{kind="create_table"} 1.0' in metrics
        assert "metasrv_region_skew_ratio 2.0" in metrics
        assert 'metasrv_build_info{version="0"} 1.0' in metrics
        assert version["server_id"] == "ms-1"
        assert ready.status_code == 200
