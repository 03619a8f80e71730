"""The catalog's history over HTTP: one line a request, who made it, and what it changed."""

import asyncio
import json
from typing import Any

import pytest

from keys.catalog import follower
from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"Prefer": "wait=10"}
ALL = "/v1/catalog/versions"
ADD = {"op": "add_column", "column": {"name": "n", "type": "int64"}}


async def get(one: Server, path: str) -> Any:
    answer = await one.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def alter(one: Server, *operations: dict[str, Any], table: str = "t") -> None:
    body = {"operations": operations}
    answer = await one.client.post(f"{TABLES}/{table}/alter", json=body, headers=WAIT)
    assert answer.status_code == 200, answer.text


async def test_given_an_added_column_then_it_is_one_change_with_its_statement() -> None:
    async with leader() as one:
        await one.make("t")
        made = one.version
        await alter(one, ADD)

        page = await get(one, ALL)

        added, created, first = page["changes"]
        assert (added["first_version"], added["version"]) == (made + 1, one.version)
        assert added["versions"] == one.version - made > 1
        (only,) = added["operations"]
        assert only["resource"]["name"] == "main.public.t"
        assert only["operation"]["op"] == "add_column"
        assert added["text"] == "alter main.public.t: add column n int64"
        assert json.loads(added["statement"]["text"])["body"] == {"operations": [ADD]}
        assert (added["by"], added["transitions"]) == ("anonymous", [])
        assert created["text"] == "create table main.public.t"
        assert first["text"] == (
            "create catalog main; create schema main.public; create placement default"
        )
        assert (first["by"], first["statement"]) == (None, None)
        assert page["catalog_version"] == one.version


async def test_given_transitions_when_asked_for_then_each_version_is_one_line() -> None:
    async with leader() as one:
        await one.make("t")
        made = one.version
        await alter(one, ADD)

        page = await get(one, f"{TABLES}/t/versions?transitions=true")

        changes = page["changes"]
        assert [each["version"] for each in changes] == list(range(one.version, made - 1, -1))
        assert {each["versions"] for each in changes} == {1}
        states = [
            [shift["before"], shift["after"]] for each in changes for shift in each["transitions"]
        ]
        assert states[::-1] == [
            ["absent", "delete-only"],
            ["delete-only", "public"],
        ]


async def test_given_a_version_then_it_is_shown_by_itself() -> None:
    async with leader() as one:
        await one.make("t")

        (change,) = [await get(one, f"{ALL}/2")]
        late = await one.client.get(f"{ALL}/99")
        none = await one.client.get(f"{ALL}/0")
        wrong = await one.client.get(f"{ALL}/x")

        assert (change["version"], change["text"]) == (2, "create table main.public.t")
        assert (late.status_code, late.json()["code"]) == (404, "not-found")
        assert none.status_code == 404
        assert wrong.status_code == 422


async def test_given_filters_then_only_what_meets_all_of_them_is_listed() -> None:
    async with leader() as one:
        schemas = "/v1/catalogs/main/schemas"
        await one.client.post(schemas, json={"name": "s"}, headers=WAIT)
        await one.client.post(f"{schemas}/s/tables", json=spec("u"), headers=WAIT)
        table_id = (await one.make("t"))["id"]
        await alter(one, ADD)
        await one.client.post(f"{TABLES}/t/rename", json={"new_name": "v"}, headers=WAIT)

        async def texts(query: str) -> list[str]:
            return [each["text"] for each in (await get(one, f"{ALL}?{query}"))["changes"]]

        renamed = "rename table main.public.t to main.public.v"
        added = "alter main.public.t: add column n int64"
        made = "create table main.public.t"
        assert await texts("operation=add_column") == [added]
        assert await texts(f"table_id={table_id}") == [renamed, added, made]
        assert await texts("schema=s") == ["create table main.s.u", "create schema main.s"]
        assert await texts("schema=main.s&operation=create_table") == ["create table main.s.u"]
        assert await texts("catalog=other") == []
        assert len(await texts("catalog=main&by=anonymous")) == 5
        assert await texts("by=anna") == []
        page = await get(one, f"{TABLES}/v/versions")
        assert [each["text"] for each in page["changes"]] == [renamed, added, made]


async def test_given_an_operation_that_there_is_not_then_422_with_what_comes_close() -> None:
    async with leader() as one:
        answer = await one.client.get(f"{ALL}?operation=add_colum")
        near = await one.client.get(f"{TABLES}/tt/versions")

        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-request")
        assert answer.json()["did_you_mean"] == "add_column"
        assert near.status_code == 404


async def test_given_pages_while_the_catalog_moves_then_each_change_is_on_one_of_them() -> None:
    async with leader() as one:
        for number in range(7):
            await one.make(f"t{number}")
        newest = one.version
        versions: list[int] = []
        token = ""
        while True:
            page = await get(one, f"{ALL}?page_size=3{token}")
            versions += [each["version"] for each in page["changes"]]
            await one.make(f"u{len(versions)}")
            if page["next_page_token"] is None:
                break
            token = f"&page_token={page['next_page_token']}"

        assert versions == list(range(newest, 0, -1))
        wrong = await one.client.get(f"{TABLES}/t0/versions?page_size=3{token}")
        assert (wrong.status_code, wrong.json()["code"]) == (400, "bad-page-token")


async def test_given_a_cascade_then_it_is_one_change_with_all_that_went() -> None:
    async with leader() as one:
        schemas = "/v1/catalogs/main/schemas"
        await one.client.post(schemas, json={"name": "s"}, headers=WAIT)
        for name in ("a", "b"):
            await one.client.post(f"{schemas}/s/tables", json=spec(name), headers=WAIT)
        await one.client.delete(f"{schemas}/s?cascade=true", headers=WAIT)

        change = (await get(one, ALL))["changes"][0]

        dropped = [
            (each["operation"]["op"], each["resource"]["name"]) for each in change["operations"]
        ]
        assert sorted(dropped) == [
            ("drop_schema", "main.s"),
            ("drop_table", "main.s.a"),
            ("drop_table", "main.s.b"),
        ]
        assert change["versions"] > 3
        assert "cascade=true" in change["statement"]["text"]


async def test_given_an_alter_that_is_cancelled_then_nothing_is_left_of_it_and_it_says_so() -> None:
    async with leader() as one:
        await one.make("t")
        before = one.version
        drop = {"operations": [{"op": "drop_column", "name": "carrier"}], "grace_s": 600}
        begun = await one.client.post(f"{TABLES}/t/alter", json=drop)
        procedure = begun.headers["location"]
        while (await get(one, procedure))["step"] != "grace":  # noqa: ASYNC110
            await asyncio.sleep(0)
        await one.client.post(f"{procedure}/cancel", headers=WAIT)
        while not (await get(one, procedure))["done"]:  # noqa: ASYNC110
            await asyncio.sleep(0)

        change = (await get(one, ALL))["changes"][0]

        assert change["first_version"] == before + 1
        assert (change["operations"], change["operations_total"]) == ([], 0)
        assert change["text"] == "nothing that shows, or not yet"


async def test_given_tables_that_exchange_names_drop_undrop_and_purge_then_each_is_told() -> None:
    async with leader() as one:
        await one.make("t")
        await one.make("u")
        await one.client.post(
            f"{TABLES}/t/rename", json={"new_name": "u", "exchange": True}, headers=WAIT
        )
        await one.client.delete(f"{TABLES}/u", headers=WAIT)
        await one.client.post(f"{TABLES}/u/undrop", headers=WAIT)
        await one.client.delete(f"{TABLES}/u", headers=WAIT)
        purge = {"table": "main.public.u", "reason": "tidy"}
        await one.client.post("/v1/purges", json=purge, headers=WAIT)

        texts = [each["text"] for each in (await get(one, ALL))["changes"]]

        assert texts[:5] == [
            "purge table main.public.u",
            "drop table main.public.u",
            "undrop table main.public.u",
            "drop table main.public.u",
            "rename table main.public.t to main.public.u; "
            "rename table main.public.u to main.public.t",
        ]


async def test_given_versions_that_memory_no_longer_holds_then_the_log_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "VERSIONS_KEPT", 8)
    async with leader() as one:
        await one.make("t")
        for number in range(10):
            await alter(one, {"op": "set_options", "options": {"app.x": str(number)}})

        page = await get(one, f"{ALL}?page_size=1000")
        first = await get(one, f"{ALL}/1")
        diff = await get(one, f"{TABLES}/t/diff?from=2")

        assert page["oldest_version"] == 0
        assert (
            first["text"]
            == "create catalog main; create schema main.public; create placement default"
        )
        assert diff["text"] == ['set app.x="9"']
        assert [change["version"] for change in page["changes"]] == list(range(one.version, 0, -1))
        assert page["changes"][-1]["text"] == first["text"]
        assert page["next_page_token"] is None
