"""POST /v1/regions/{id}/switch-leader: another copy in sync leads, or the request is refused."""

from typing import Any

import httpx
import pytest

from keys.model.tables import RegionRoute
from tests.metasrv.api.rig import Server, leader
from tests.metasrv.service.cluster.copied import copied_region, region_now, roles


async def switch(server: Server, region: RegionRoute, **body: Any) -> httpx.Response:
    path = f"/v1/regions/{region.region_id}/switch-leader"
    query = {"dry_run": "true"} if body.pop("dry_run", False) else {}
    return await server.client.post(
        path, json={"reason": "test", **body}, params=query, headers={"prefer": "wait=60"}
    )


async def change(server: Server, region: RegionRoute, action: str, **body: Any) -> httpx.Response:
    path = f"/v1/regions/{region.region_id}/{action}"
    request = {"reason": "test", **body}
    return await server.client.post(path, json=request, headers={"prefer": "wait=60"})


async def test_given_a_copy_of_the_set_when_removed_by_force_then_gone_and_added_again() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        needed = await change(server, region, f"copies/{in_sync.node}/remove")
        led = await change(server, region, f"copies/{region.leader}/remove", force=True)
        absent = await change(server, region, "copies/dn-9/remove")
        assert needed.json()["code"] == led.json()["code"] == "action-not-allowed"
        assert absent.status_code == 404
        assert region_now(server, region) == region

        removed = await change(server, region, f"copies/{in_sync.node}/remove", force=True)
        assert removed.status_code == 200, removed.text
        assert roles(region_now(server, region)) == {learner.node: "learner"}

        added = await change(server, region, "copies")
        assert added.status_code == 200, added.text
        now = region_now(server, region)
        assert roles(now) == {learner.node: "learner", in_sync.node: "learner"}
        assert in_sync.root not in now.roots, "a copy that comes back has another root"


async def test_given_a_partition_group_when_a_copy_is_added_then_it_comes_to_its_node() -> None:
    """The third node has no region at all."""
    async with leader(nodes=3) as server:
        await server.client.post("/v1/catalogs/main/tablespaces", json={"name": "orders"})
        for name in ("a", "b"):
            await server.make(name, tablespace="orders", replicas=2)
        tables = server.state.follower.catalog.tables.values()
        first, second = (table.route.region_routes[0] for table in tables)
        assert first.nodes == second.nodes

        (beside,) = second.other_nodes
        gone = await change(server, second, f"copies/{beside}/remove", force=True)
        assert gone.status_code == 200, gone.text
        added = await change(server, second, "copies")

        assert added.status_code == 200, added.text
        assert roles(region_now(server, second)) == {beside: "learner"}


@pytest.mark.parametrize("node", ["dn-1", "dn-2", "dn-3", "dn-9", None])
async def test_given_no_node_that_may_get_a_copy_when_added_then_refused_with_reasons(
    node: str | None,
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)

        answer = await change(server, region, "copies", node=node)

        assert (answer.status_code, answer.json()["code"]) == (409, "node-not-eligible")
        assert answer.json()["facts"]["reasons"]
        assert region_now(server, region) == region


async def test_given_as_many_copies_as_may_be_when_one_is_added_then_refused_at_once() -> None:
    async with leader(nodes=5) as server:
        region = await copied_region(server)
        assert (await change(server, region, "copies")).status_code == 200
        full = region_now(server, region)

        answer = await change(server, region, "copies")

        assert (answer.status_code, answer.json()["code"]) == (409, "replica-limit")
        assert region_now(server, region) == full


async def test_given_a_copy_in_sync_when_asked_then_it_leads_and_the_former_leader_is_in_sync() -> (
    None
):
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        in_sync, learner = region.copies

        answer = await switch(server, region, expected_epoch=region.epoch)

        assert answer.status_code == 200, answer.text
        assert answer.json()["kind"] == "switch_leader"
        now = region_now(server, region)
        assert (now.leader, now.epoch) == (in_sync.node, region.epoch + 1)
        assert roles(now) == {region.leader: "in-sync", learner.node: "learner"}

        again = await switch(server, now, to_node=now.leader)
        assert again.json()["result"]["switched"] is False
        assert region_now(server, region).epoch == now.epoch


async def test_given_a_dry_run_then_it_says_what_would_be_done_and_nothing_is() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)

        answer = await switch(server, region, dry_run=True)

        assert answer.status_code == 200, answer.text
        assert region_now(server, region) == region


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"expected_epoch": 99}, 412, "epoch-mismatch"),
        ({"to_node": "dn-99"}, 409, "node-not-eligible"),
        ({"to_node": "no node"}, 422, "invalid-identifier"),
        ({"reason": ""}, 422, "invalid-request"),
        ({"node": "dn-1"}, 422, "invalid-request"),
    ],
)
async def test_given_a_request_that_cannot_be_when_asked_then_refused_at_once(
    body: dict[str, Any], status: int, code: str
) -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)

        answer = await switch(server, region, **body)

        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert not server.term.manager.living()
        assert region_now(server, region).epoch == region.epoch


async def test_given_a_learner_or_an_unknown_region_when_asked_then_refused() -> None:
    async with leader(nodes=3) as server:
        region = await copied_region(server)
        learner = region.copies[1]

        refused = await switch(server, region, to_node=learner.node)
        unknown = await switch(server, region.model_copy(update={"region_id": "7"}))

        assert refused.json()["code"] == "node-not-eligible"
        assert refused.json()["facts"]["reasons"][learner.node] == "its copy is not in sync"
        assert unknown.status_code == 404
