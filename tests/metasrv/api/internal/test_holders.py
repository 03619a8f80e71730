"""Schema leases over HTTP: registered before it is answered, heard in order, waited for by name."""

import asyncio
import re
from typing import Any

import pytest

from keys.commit.txn import snapshot
from keys.model.holders import HolderKey, HolderRecord
from metasrv.nodes.lease_table import wait_ms
from metasrv_base.wire.frontend.holders import (
    SchemaLeaseList,
)
from metasrv_base.wire.node.nodes import RefusedStat
from tests.metasrv.api.internal.holder_calls import acknowledge, register, told_all, waits_of
from tests.metasrv.api.rig import (
    DEADLINE_MS,
    SCHEMA_LEASE_MS,
    TABLES,
    Server,
    beat,
    follower_of,
    leader,
)
from tests.metasrv.holders.reader import whole
from tests.metasrv.holders.samples import acknowledgement, pin, registration


async def stored(one: Server, holder_id: str) -> HolderRecord | None:
    key = HolderKey(holder_id)
    return (await snapshot(one.kv, key, deadline_ms=DEADLINE_MS)).get(key)


async def leases(one: Server, **query: Any) -> SchemaLeaseList:
    answer = await one.client.get("/v1/schema-leases", params=query)
    assert answer.status_code == 200, answer.text
    return SchemaLeaseList.model_validate_json(answer.content)


async def test_given_a_holder_when_it_registers_then_it_is_stored_before_it_is_answered() -> None:
    async with leader() as one:
        await one.make()

        answer = await register(one, "fe-1")

        assert answer.catalog_version == one.version
        assert (answer.lease_ms, answer.transaction_age_max_ms) == (SCHEMA_LEASE_MS, 10_000)
        assert 3 * answer.acknowledge_ms <= answer.lease_ms
        assert answer.metasrvs == ["http://ms-1"]
        held = await stored(one, "fe-1")
        assert held is not None
        assert (held.incarnation, held.address) == ("i-1", "http://fe-1:4400")


async def test_given_a_registration_that_is_repeated_then_it_is_not_written_anew() -> None:
    async with leader() as one:
        said = registration("fe-1").model_dump(mode="json")
        path = "/internal/v1/holders/fe-1/register"
        first = await one.client.post(path, json=said)
        revision = one.kv.revision

        again = await one.client.post(path, json=said)

        assert (first.status_code, again.status_code) == (200, 200)
        assert one.kv.revision == revision


async def test_given_acknowledgements_then_they_cost_the_store_nothing() -> None:
    async with leader() as one:
        await register(one, "fe-1")
        revision = one.kv.revision

        for sequence in range(1, 50):
            answer = await acknowledge(one, "fe-1", sequence, one.version)

        assert one.kv.revision == revision
        assert (answer.sequence, answer.catalog_version) == (49, one.version)


async def test_given_a_holder_that_signs_off_then_nobody_waits_for_it_any_more() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        table = await one.make()
        await register(one, "fe-1", pinned=(pin(table["id"], 0),))
        waiting = tasks.create_task(one.term.holders.drained(table["id"], 1))
        await asyncio.sleep(0)
        assert not waiting.done()

        path = "/internal/v1/holders/fe-1"
        old = await one.client.delete(path, params={"incarnation": "i-0"})
        gone = await one.client.delete(path, params={"incarnation": "i-1"})
        again = await one.client.delete(path, params={"incarnation": "i-1"})

        assert [answer.status_code for answer in (old, gone, again)] == [410, 200, 404]
        await waiting
        assert await stored(one, "fe-1") is None


async def test_given_holders_when_asked_then_exactly_those_that_are_waited_for_are_named() -> None:
    async with leader() as one, follower_of(one) as other:
        table = (await one.make())["id"]
        for name in ("fe-1", "fe-2", "fe-3"):
            await register(one, name)
        await acknowledge(one, "fe-1", 1, one.version, pin(table, 0, "t-9", age_ms=2_500))
        await acknowledge(one, "fe-2", 1, one.version, pin(table, 1))

        everybody = await leases(other)
        using = await leases(other, table=table)
        behind = await leases(other, table=table, older_than=1)

        assert [one.holder_id for one in everybody.holders] == ["fe-1", "fe-2", "fe-3"]
        assert [one.holder_id for one in using.holders] == ["fe-1", "fe-2"]
        (late,) = behind.holders
        assert late.holder_id == "fe-1"
        assert [(p.table, p.transaction, p.age_ms) for p in late.pinned] == [
            ("main.public.t", "t-9", 2_500)
        ]
        assert late.lease_left_ms <= wait_ms(SCHEMA_LEASE_MS)


async def test_given_a_version_that_is_not_published_then_everybody_would_be_waited_for() -> None:
    async with leader() as one:
        table = (await one.make())["id"]
        for name in ("fe-1", "fe-2"):
            await register(one, name)

        found = await leases(one, table=table, older_than=2)

        assert [one.holder_id for one in found.holders] == ["fe-1", "fe-2"]


async def test_given_a_version_without_its_table_when_asked_then_it_is_refused() -> None:
    async with leader() as one:
        answer = await one.client.get("/v1/schema-leases", params={"older_than": 2})

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/internal/v1/holders/fe-1/register", registration("fe-1")),
        ("PUT", "/internal/v1/holders/fe-1/acknowledge", acknowledgement("fe-1", 1, 1)),
        ("DELETE", "/internal/v1/holders/fe-1?incarnation=i-1", None),
    ],
)
async def test_given_a_follower_when_a_holder_speaks_to_it_then_421_with_the_leader(
    method: str, path: str, body: Any
) -> None:
    async with leader() as led, follower_of(led) as other:
        said = None if body is None else body.model_dump(mode="json")

        away = await other.client.request(method, path, json=said)

        assert (away.status_code, away.json()["code"]) == (421, "not-leader")
        assert away.json()["facts"]["leader_url"] == "http://ms-1"


async def test_given_a_pin_below_the_floor_when_told_then_it_is_counted_and_alters_are_held() -> (
    None
):
    async with leader() as one:
        table = (await one.make())["id"]
        await register(one, "fe-1")
        await acknowledge(one, "fe-1", 1, one.version)
        await acknowledge(one, "fe-1", 2, one.version, pin(table, 0, "t-9"))
        alter = {"operations": [{"op": "add_column", "column": {"name": "x", "type": "int64"}}]}

        plan = (await one.client.post(f"{TABLES}/t/alter?dry_run=true", json=alter)).json()
        said = (await one.client.get("/metrics")).text

        held = [(b["kind"], b["holder"], b["waits"]) for b in plan["blockers"]]
        assert ("refused", "schema-audit-failed", True) in held
        assert not plan["complete"]
        for line in (
            "metasrv_schema_audit_checks 1.0",
            "metasrv_schema_audit_violations 1.0",
            "metasrv_schema_audit_stopped_tables 1.0",
            "metasrv_schema_versions_in_use_max 2.0",
        ):
            assert line in said


async def test_given_holders_when_the_metrics_are_read_then_the_leader_counts_them() -> None:
    async with leader() as one, asyncio.TaskGroup() as tasks:
        table = (await one.make())["id"]
        await register(one, "fe-1")
        await register(one, "fe-2", pinned=(pin(table, 0),))
        await acknowledge(one, "fe-1", 1, one.version)
        one.clock.ahead_ms += 4_000
        waiting = tasks.create_task(one.term.holders.drained(table, 1))
        await asyncio.sleep(0)

        said = (await one.client.get("/metrics")).text
        await acknowledge(one, "fe-2", 1, one.version)
        await waiting
        then = (await one.client.get("/metrics")).text

        assert "metasrv_schema_lease_holders 2.0" in said
        assert "metasrv_schema_lease_waits 1.0" in said
        assert "metasrv_schema_lease_waits 0.0" in then
        assert "metasrv_schema_lease_wait_seconds_count 1.0" in then
        (silence,) = re.findall(r"^metasrv_schema_lease_longest_silence_seconds (.*)$", said, re.M)
        assert float(silence) >= 4


@pytest.mark.case("online 22")
async def test_given_a_change_that_waits_then_it_names_whom_it_waits_for_and_readers_go_on() -> (
    None
):
    async with leader() as one:
        table = (await one.make())["id"]
        await register(one, "fe-1")
        note = {"name": "note", "type": "string"}
        alter = {"operations": [{"op": "add_column", "column": note}]}
        answer = await one.client.post(f"{TABLES}/t/alter", json=alter)
        assert answer.status_code == 202, answer.text
        path = f"/v1/procedures/{answer.json()['id']}"

        silent = await waits_of(one, path, lambda wait: wait["holder"] == "fe-1")
        at = one.version
        await acknowledge(one, "fe-1", 1, at, pin(table, 1, "t-9", age_ms=2_500))
        pinned = await waits_of(one, path, lambda wait: wait["transaction"] is not None)
        shown = (await one.client.get(f"{TABLES}/t")).json()
        known = whole(one.state.follower).tables[table]
        await acknowledge(one, "fe-1", 2, at)
        ended = await told_all(one, path)

        assert (silent["kind"], silent["have"] < silent["need"]) == ("schema_lease", True)
        assert 0 < silent["expires_in_s"] <= wait_ms(SCHEMA_LEASE_MS) // 1_000 + 1
        assert (pinned["have"], pinned["transaction"]) == (at, "t-9")
        states = [column["state"] for column in shown["columns"]]
        assert states == [column.state for column in known.columns]
        assert (shown["schema_version"], states) == (2, ["public", "public", "delete-only"])
        assert (pinned["transaction_age_ms"], pinned["since"]) == (2_500, silent["since"])
        assert (ended["state"], ended["waiting_for"]) == ("succeeded", [])


async def test_given_a_holder_in_the_way_when_a_change_is_tried_out_then_it_is_a_blocker() -> None:
    async with leader() as one:
        table = (await one.make())["id"]
        await register(one, "fe-1", pinned=(pin(table, 0),))
        await register(one, "fe-2")
        await acknowledge(one, "fe-1", 1, one.version, pin(table, 0))
        await acknowledge(one, "fe-2", 1, one.version)
        note = {"name": "note", "type": "string"}
        alter = {"operations": [{"op": "add_column", "column": note}]}

        tried = await one.client.post(f"{TABLES}/t/alter?dry_run=true", json=alter)

        assert tried.status_code == 200, tried.text
        blockers = {(b["kind"], b["holder"]) for b in tried.json()["blockers"]}
        assert blockers == {("schema_lease", "fe-1")}


async def test_given_regions_that_refuse_below_their_floor_then_the_leader_shows_whose_it_was() -> (
    None
):
    async with leader() as one:
        table = (await one.make())["id"]
        await register(one, "fe-1")
        nodes = one.term.nodes
        late = [RefusedStat(table_id=table, holder_id="fe-1", count=3)]
        more = [late[0], RefusedStat(table_id=table, holder_id=None, count=1)]
        nodes.heartbeat(beat("dn-1", 2, refused=late))
        nodes.heartbeat(beat("dn-2", 2, refused=[RefusedStat(table_id=7, holder_id="x", count=2)]))
        nodes.heartbeat(beat("dn-1", 3, refused=more))

        shown = {(b.table, b.holder_id, b.count) for b in (await leases(one)).refused}
        metrics = (await one.client.get("/metrics")).text

        assert shown == {("main.public.t", "fe-1", 3), ("main.public.t", None, 1), (None, "x", 2)}
        assert "metasrv_schema_floor_refusals 6.0" in metrics
        assert "metasrv_schema_audit_stopped_tables 0.0" in metrics, "the floor did its work"
