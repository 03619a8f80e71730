"""A column of another type, through `POST T/alter`: shown as it comes, refused with the reason."""

from typing import Any

import httpx
import pytest

from tests.metasrv.api.rig import TABLES, Server, leader

WAIT = {"prefer": "wait=10"}


async def altered(one: Server, *operations: dict[str, Any], **query: str) -> httpx.Response:
    body = {"operations": list(operations)}
    return await one.client.post(f"{TABLES}/t/alter", json=body, headers=WAIT, params=query)


def to(name: str, type: str) -> dict[str, Any]:
    return {"op": "alter_type", "name": name, "type": type}


async def test_given_a_column_when_its_type_changes_then_it_has_another_id_in_its_place() -> None:
    async with leader() as one:
        made = await one.make()

        changed = await altered(one, to("carrier", "binary"))

        before, after = made["columns"], changed.json()["columns"]
        assert changed.status_code == 200, changed.text
        assert [column["name"] for column in after] == [column["name"] for column in before]
        (column,) = (column for column in after if column["name"] == "carrier")
        assert (column["type"], column["state"]) == ("binary", "public")
        assert column["replaces"] is None
        assert column["id"] not in [column["id"] for column in before]


async def test_given_a_type_change_when_rehearsed_then_its_versions_and_its_scan_are_listed() -> (
    None
):
    async with leader() as one:
        await one.make()

        plan = (await altered(one, to("carrier", "int64"), dry_run="true")).json()

        shifts = [
            [(shift["name"], shift["before"], shift["after"]) for shift in version["shifts"]]
            for step in plan["steps"]
            for version in step["publishes"]
        ]
        assert shifts == [
            [("carrier", "absent", "write-only")],
            [("carrier", "public", "write-only"), ("carrier", "write-only", "public")],
            [("carrier", "write-only", "absent")],
        ]
        assert "validate" in [step["step"] for step in plan["steps"]]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (to("id", "int32"), "primary key"),
        (to("carrier", "string"), "already"),
    ],
)
async def test_given_a_type_that_cannot_be_when_asked_for_then_422_says_why(
    operation: dict[str, Any], reason: str
) -> None:
    async with leader() as one:
        await one.make()

        refused = await altered(one, operation)

        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-schema-change")
        assert reason in refused.text


async def test_given_an_index_when_the_type_of_its_column_changes_then_422_names_it() -> None:
    async with leader() as one:
        await one.make()
        index = {"name": "by_carrier", "columns": ["carrier"]}
        await one.client.post(f"{TABLES}/t/indexes", json=index, headers=WAIT)

        refused = await altered(one, to("carrier", "binary"))

        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-schema-change")
        assert "by_carrier" in refused.text
