"""The history of a table: by table, by time, with the statement."""

from typing import Any

import pytest

from tests.metasrv.api.internal.holder_calls import register, told_all, waits_of
from tests.metasrv.api.rig import TABLES, Server, beat, leader
from tests.metasrv.service.procedures.pages import HOUR_MS, all_pages, text_of

WAIT = {"prefer": "wait=10"}


async def add_column(one: Server, table: str, name: str) -> dict[str, Any]:
    """The body that was sent."""
    body = {"operations": [{"op": "add_column", "column": {"name": name, "type": "int64"}}]}
    answer = await one.client.post(f"{TABLES}/{table}/alter", json=body, headers=WAIT)
    assert answer.status_code == 200, answer.text
    return body


@pytest.mark.case("online 73")
async def test_given_changes_when_asked_for_by_table_and_time_then_their_statements_are_kept() -> (
    None
):
    async with leader(nodes=1) as one:
        table, other = [(await one.make(name))["id"] for name in ("t", "u")]
        await add_column(one, "t", "first")
        one.clock.ahead_ms += HOUR_MS
        one.term.nodes.heartbeat(beat("dn-1", 2))
        since = text_of(one.clock.wall_ms() - HOUR_MS // 2)
        body = await add_column(one, "t", "second")
        await add_column(one, "u", "second")

        of_table = await all_pages(one, resource=f"table:{table}")
        of_other = await all_pages(one, resource=f"table:{other}", since=since)
        (late,) = await all_pages(one, resource=f"table:{table}", since=since)
        early = await all_pages(one, resource=f"table:{table}", until=since)

        assert of_table == [late, *early]
        assert (len(early), len(of_other)) == (2, 1)
        told = (await one.client.get(f"/v1/procedures/{late}")).json()
        path = f"{TABLES}/t/alter"
        assert told["statement"] == {"method": "POST", "path": path, "body": body}
        listed = (await one.client.get("/v1/procedures")).json()["procedures"]
        assert {row["statement"] for row in listed} == {None}


async def test_given_a_change_when_asked_for_then_each_version_of_it_is_told_with_its_times() -> (
    None
):
    async with leader(nodes=1) as one:
        made = await one.make("t")
        await register(one, "fe-1")
        body = {"operations": [{"op": "add_column", "column": {"name": "x", "type": "int64"}}]}
        sent = await one.client.post(f"{TABLES}/t/alter", json=body)
        path = f"/v1/procedures/{sent.json()['id']}"

        await waits_of(one, path, lambda wait: wait["holder"] == "fe-1")
        (waits,) = (await one.client.get(path)).json()["transitions"]
        done, last = (await told_all(one, path))["transitions"]

        (shift,), (late,) = waits["shifts"], done["late"]
        assert (shift["what"], shift["name"]) == ("column", "x")
        assert (shift["before"], shift["after"]) == ("absent", "delete-only")
        assert (waits["drained_at"], waits["drain_ms"], waits["late"]) == (None, None, [])
        followed = {name: done[name] for name in ("drained_at", "drain_ms", "holders", "late")}
        assert done == {**waits, **followed}
        assert (late["holder"], late["went"], done["holders"]) == ("fe-1", "followed", 1)
        assert done["drained_at"] >= done["published_at"]
        assert [one["after"] for one in last["shifts"]] == ["public"]
        versions = [one["schema_version"] for one in (done, last)]
        assert versions == [made["schema_version"] + 1, made["schema_version"] + 2]
