"""Nodes leave: offline, removed by time or by request, and what becomes of those that return."""

from typing import Any

import pytest

from keys.model.cluster import DATANODE, RemovedNodeKey
from keys.store.kv import Request, TxnAnswer
from metasrv.leadership.purging import DropRetention, due
from metasrv.leadership.retirement import look
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Conflict
from metasrv_base.wire.node.orders import CloseRegion, DropRegion
from tests.metasrv.api.rig import Server, beat, leader, registration
from tests.metasrv.nodes.samples import stat

DAY_MS = 86_400_000
HELD = "4398046511104"
WHY = {"reason": "sold"}
WAIT = {"Prefer": "wait=10"}
TABLE = "/v1/catalogs/main/schemas/public/tables/t"


async def decommission(one: Server, node: str, **more: Any) -> Any:
    path = f"/v1/nodes/{node}/decommission"
    return await one.client.post(path, json={**WHY, **more}, headers=WAIT)


async def passed(one: Server, ms: int, *alive: str) -> None:
    """So much time; *alive* were heard, and the ticker has looked."""
    one.clock.ahead_ms += ms
    for name in alive:
        one.term.nodes.heartbeat(beat(name, one.term.nodes.entry(name).sequence + 1))
    await look(one.term, one.clock)


async def state_of(one: Server, node: str) -> str:
    found: str = (await one.client.get(f"/v1/nodes/{node}")).json()["state"]
    return found


async def names(one: Server) -> list[str]:
    return [node["id"] for node in (await one.client.get("/v1/nodes")).json()["nodes"]]


async def test_given_a_node_that_leads_nothing_when_decommissioned_then_its_row_is_gone() -> None:
    async with leader(nodes=2) as one:
        planned = await one.client.post("/v1/nodes/dn-2/decommission?dry_run=true", json=WHY)
        before = await names(one)
        done = await decommission(one, "dn-2")
        again = await decommission(one, "dn-2", reason="asked twice")

        assert (planned.status_code, before) == (200, ["dn-1", "dn-2"])
        assert (done.status_code, done.json()["state"]) == (200, "removed")
        assert done.json()["removal"]["reason"] == "sold"
        assert again.json() == done.json()
        assert await names(one) == ["dn-1"]
        assert b"__node/datanode/dn-2" not in {item.key for item in one.kv.dump()}


async def test_given_a_node_that_leads_when_decommissioned_then_refused_with_what() -> None:
    async with leader(nodes=1) as one:
        table = await one.make()

        answer = await decommission(one, "dn-1")

        assert (answer.status_code, answer.json()["code"]) == (409, "node-in-use")
        assert answer.json()["facts"]["leads"] == [
            region["region_id"] for region in table["regions"]
        ]
        assert "leads 1 regions" in answer.json()["detail"]
        assert (await one.client.get("/v1/nodes/dn-1")).json()["cordon"] is None


async def test_given_a_dropped_table_when_decommissioned_then_listed_with_its_date() -> None:
    async with leader(nodes=1) as one:
        await one.make()
        await one.client.delete(TABLE, headers=WAIT)

        refused = await decommission(one, "dn-1")

        assert refused.json()["code"] == "node-in-use"
        (held,) = refused.json()["facts"]["dropped"]
        assert held["name"] == "main.public.t"
        assert held["purged_at"] > "2"


async def test_given_lost_storage_when_decommissioned_then_only_of_a_dead_node() -> None:
    async with leader(nodes=2) as one:
        await one.make()
        await one.client.delete(TABLE, headers=WAIT)
        alive = await decommission(one, "dn-1", lost=True)
        await passed(one, 120_000, "dn-2")
        path = "/v1/nodes/dn-1/decommission?dry_run=true"
        planned = await one.client.post(path, json={**WHY, "lost": True})
        gone = await decommission(one, "dn-1", lost=True)
        again = await decommission(one, "dn-1", lost=True)
        shown = (await one.client.get("/v1/nodes/dn-1")).json()

        assert (alive.status_code, alive.json()["code"]) == (409, "node-still-alive")
        assert planned.json()["removal"]["lost"] is True
        assert (gone.status_code, gone.json()["kind"]) == (200, "decommission_node")
        assert (shown["state"], shown["removal"]["lost"]) == ("removed", True)
        assert (again.status_code, again.json()["removal"]) == (200, shown["removal"])
        away = {node.node_id for node in one.term.ports.placement.nodes() if not node.alive}
        kept = DropRetention(one.clock.wall_ms(), 0)
        dropped = at_once(due(one.state.follower.catalog, kept, away, 9))
        assert [table.info.name for table in dropped] == ["t"], "nobody waits for its disk"


async def test_given_a_dead_node_when_time_passes_then_offline_then_removed() -> None:
    async with leader(nodes=2) as one:
        await passed(one, 120_000, "dn-1")
        dead = await state_of(one, "dn-2")
        await passed(one, 3_600_000, "dn-1")
        offline = await state_of(one, "dn-2")
        await passed(one, 31 * DAY_MS, "dn-1")

        assert (dead, offline) == ("dead", "offline")
        assert await state_of(one, "dn-2") == "removed"
        assert await names(one) == ["dn-1"]


async def test_given_an_offline_node_when_heard_again_then_its_time_is_forgotten() -> None:
    async with leader(nodes=2) as one:
        await passed(one, 120_000, "dn-1")
        await passed(one, 3_600_000, "dn-1")
        await passed(one, 1_000, "dn-1", "dn-2")
        shown = (await one.client.get("/v1/nodes/dn-2")).json()

        assert (shown["state"], shown["dead_since"]) == ("alive", None)


async def test_given_an_offline_node_that_is_heard_as_it_is_removed_then_it_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Heard between the look at what names it and the removal: by then it may be given regions."""
    async with leader(nodes=2) as one:
        await passed(one, 120_000, "dn-1")
        await passed(one, 3_600_000, "dn-1")
        sound, removed = one.kv.txn, bytes(RemovedNodeKey(DATANODE, "dn-2"))
        reads = 0

        async def heard_meanwhile(request: Request, *, deadline_ms: int) -> TxnAnswer:
            nonlocal reads
            if any(get.key == removed for get in request.reads):
                reads += 1
                one.term.nodes.heartbeat(beat("dn-2", 10 + reads))
            return await sound(request, deadline_ms=deadline_ms)

        monkeypatch.setattr(one.kv, "txn", heard_meanwhile)
        with pytest.raises(Conflict):
            await passed(one, 31 * DAY_MS, "dn-1")

        assert reads == 1
        assert await state_of(one, "dn-2") == "alive"


async def test_given_a_dead_node_that_a_route_names_when_time_passes_then_it_stays() -> None:
    async with leader(nodes=1) as one:
        await one.make()
        await passed(one, 120_000)
        await passed(one, 90 * DAY_MS)

        assert await state_of(one, "dn-1") == "offline"


async def test_given_a_removed_node_when_its_process_goes_on_then_told_to_start_anew() -> None:
    async with leader(nodes=2) as one:
        await decommission(one, "dn-2")

        with pytest.raises(Conflict) as told:
            await one.term.nodes.register(registration("dn-2"))

        assert told.value.code == "node-removed"


async def test_given_a_removed_node_when_it_returns_then_what_it_holds_is_in_quarantine() -> None:
    async with leader(nodes=2) as one:
        await decommission(one, "dn-2")
        back = registration("dn-2", incarnation="i-2", folders=[f"{HELD}-1"], folder_count=1)
        await one.term.nodes.register(back)
        said = one.term.nodes.heartbeat(beat("dn-2", 1, regions=[stat(HELD)], incarnation="i-2"))

        shown = (await one.client.get("/v1/nodes/dn-2")).json()
        assert (shown["state"], shown["quarantined"]) == ("alive", [f"{HELD}-1"])
        assert shown["removal"]["reason"] == "sold"
        assert shown["cordon"] is None
        assert [type(order) for order in said.instructions] == [CloseRegion], "nothing is deleted"
        assert said.grants == []


async def test_given_a_quarantine_when_released_then_what_nobody_knows_is_dropped() -> None:
    async with leader(nodes=2) as one:
        await decommission(one, "dn-2")
        back = registration("dn-2", incarnation="i-2", folders=[f"{HELD}-1"], folder_count=1)
        await one.term.nodes.register(back)
        path = "/v1/nodes/dn-2/release"
        planned = await one.client.post(f"{path}?dry_run=true", json=WHY)
        before = (await one.client.get("/v1/nodes/dn-2")).json()["quarantined"]
        done = await one.client.post(path, json=WHY)
        again = await one.client.post(path, json=WHY)
        said = one.term.nodes.heartbeat(beat("dn-2", 1, regions=[stat(HELD)], incarnation="i-2"))
        await one.term.nodes.register(registration("dn-2", incarnation="i-3"))
        shown = (await one.client.get("/v1/nodes/dn-2")).json()

        assert (planned.json()["quarantined"], before) == ([], [f"{HELD}-1"])
        assert (done.status_code, done.json()["quarantined"]) == (200, [])
        assert again.json()["removal"] is None
        assert [type(order) for order in said.instructions] == [DropRegion]
        assert shown["quarantined"] == [], "another process of it is not put there again"


async def test_given_no_reason_or_no_node_when_released_then_refused() -> None:
    async with leader(nodes=1) as one:
        silent = await one.client.post("/v1/nodes/dn-1/release", json={"reason": ""})
        unknown = await one.client.post("/v1/nodes/dn-9/release", json=WHY)

        assert (silent.status_code, silent.json()["code"]) == (422, "invalid-request")
        assert unknown.status_code == 404


async def purge(one: Server, **facts: Any) -> Any:
    return await one.client.post("/v1/purges", json={**WHY, **facts}, headers=WAIT)


@pytest.mark.parametrize("by", ["id", "name"])
async def test_given_a_dropped_table_when_purged_then_its_node_may_leave(by: str) -> None:
    async with leader(nodes=2) as one:
        made = await one.make()
        led_by = made["regions"][0]["leader"]
        early = await purge(one, table="main.public.t")
        await one.client.delete(TABLE, headers=WAIT)

        asked = {"table_id": made["id"]} if by == "id" else {"table": "main.public.t"}
        done = await purge(one, **asked)
        again = await purge(one, **asked)

        assert (early.status_code, early.json()["code"]) == (404, "table-not-found")
        assert done.status_code == 204, done.text
        assert again.status_code == 404
        listed = (await one.client.get("/v1/procedures?kind=purge_table")).json()["procedures"]
        whole = (await one.client.get(f"/v1/procedures/{listed[0]['id']}")).json()
        assert whole["statement"]["body"]["reason"] == "sold"
        assert (await decommission(one, led_by)).status_code == 200


async def test_given_a_purge_that_names_nothing_then_422_says_what_to_name() -> None:
    async with leader(nodes=1) as one:
        for facts in ({}, {"table": "t"}):
            answer = await purge(one, **facts)
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
