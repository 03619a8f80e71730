"""`POST T/restore`: an alter back to an earlier definition, and what it cannot bring back."""

from typing import Any

import pytest

from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.service.catalog.old import forget

WAIT = {"Prefer": "wait=10"}
T = f"{TABLES}/t"


async def post(one: Server, path: str, body: Any, status: int = 200) -> Any:
    answer = await one.client.post(path, json=body, headers=WAIT)
    assert answer.status_code == status, answer.text
    return answer.json()


async def alter(one: Server, *operations: dict[str, Any]) -> None:
    await post(one, f"{T}/alter", {"operations": operations})


def shown(table: Any) -> Any:
    columns = [
        (each["name"], each["type"], each["nullable"], each["default"]) for each in table["columns"]
    ]
    return columns, table["options"], [each["name"] for each in table["indexes"]]


NUMBER = {"op": "add_column", "column": {"name": "n", "type": "int64", "default": 7}}


async def test_given_a_bad_migration_when_restored_then_the_definition_of_before_is_back() -> None:
    async with leader() as one:
        await one.make("t", options={"comment": "first"})
        await alter(one, NUMBER)
        version, before = one.version, (await one.client.get(T)).json()
        await alter(one, {"op": "drop_column", "name": "n"})
        await alter(
            one,
            {"op": "rename_column", "name": "carrier", "new_name": "line"},
            {"op": "add_column", "column": {"name": "wrong", "type": "string"}},
            {"op": "set_options", "options": {"comment": "second", "app.x": "1"}},
        )
        last = one.version
        forget(one)

        plan = await post(one, f"{T}/restore?dry_run=true", {"version": version})
        assert one.version == last
        table = await post(one, f"{T}/restore", {"version": version})

        assert shown(table) == shown(before)
        assert table["not_restored"] == plan["not_restored"]
        assert plan["not_restored"] == [
            "values of column n: they went with it; rows that are there have 7"
        ]
        assert plan["kind"] == "alter_table"
        history = (await one.client.get("/v1/catalog/versions?page_size=1")).json()["changes"][0]
        assert "drop column wrong" in history["text"]
        assert "/restore" in history["statement"]["text"]


async def test_given_the_definition_of_now_when_restored_then_nothing_is_done() -> None:
    async with leader() as one:
        await one.make("t")
        version = one.version
        await one.make("other")

        table = await post(one, f"{T}/restore", {"version": version})
        plan = await post(one, f"{T}/restore?dry_run=true", {"version": version})

        assert (table["not_restored"], plan["kind"], plan["not_restored"]) == ([], None, [])
        assert table["version"] == 1


async def test_given_an_index_that_came_then_it_goes_and_one_that_went_is_told() -> None:
    async with leader() as one:
        await one.make("t")
        bare = one.version
        await post(one, f"{T}/indexes", {"name": "i", "columns": ["carrier"]}, 201)
        indexed = one.version

        without = await post(one, f"{T}/restore", {"version": bare})
        again = await post(one, f"{T}/restore", {"version": indexed})

        assert without["indexes"] == []
        (reason,) = again["not_restored"]
        assert reason.startswith("create index i on main.public.t (carrier)")
        assert '"columns": ["carrier"]' in reason


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid-request"),
        ({"version": -1}, 422, "invalid-request"),
        ({"version": "1"}, 422, "invalid-request"),
        ({"version": 1}, 404, "table-not-found"),
        ({"version": 1 << 63}, 422, "invalid-request"),
    ],
)
async def test_given_a_version_without_the_table_then_it_is_refused(
    body: Any, status: int, code: str
) -> None:
    async with leader() as one:
        await one.make("t")

        answer = await post(one, f"{T}/restore", body, status)
        none = await post(one, f"{TABLES}/none/restore", {"version": one.version}, 404)

        assert (answer["code"], none["code"]) == (code, "table-not-found")


async def test_given_sets_of_columns_then_the_history_of_the_table_lists_them() -> None:
    async with leader() as one:
        made = await one.make("t")
        await alter(one, NUMBER)
        added = one.version
        await post(one, f"{T}/rename", {"new_name": "u"})

        page = (await one.client.get(f"{TABLES}/u/versions?page_size=1")).json()
        token = page["next_page_token"]
        second = (
            await one.client.get(f"{TABLES}/u/versions?page_size=1&page_token={token}")
        ).json()

        new, old = page["schema_versions"]
        assert page["table_id"] == made["id"]
        assert [each["name"] for each in new["columns"]] == ["id", "carrier", "n"]
        assert [each["name"] for each in old["columns"]] == ["id", "carrier"]
        assert old["catalog_version"] < new["catalog_version"] <= added
        assert new["schema_version"] > old["schema_version"]
        assert old["committed_at"] < new["committed_at"]
        assert second["schema_versions"] == []
