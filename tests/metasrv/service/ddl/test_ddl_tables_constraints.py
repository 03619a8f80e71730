"""Constraints of rows through `POST T/alter`: shown with names, and gone when dropped."""

from typing import Any

import httpx
import pytest

from tests.metasrv.api.rig import TABLES, Server, leader

WAIT = {"prefer": "wait=10"}
CHECK = {"op": "add_constraint", "name": "known", "check": "carrier in ('UA','AA') or id > 1"}


async def altered(one: Server, *operations: dict[str, Any]) -> httpx.Response:
    body = {"operations": list(operations)}
    return await one.client.post(f"{TABLES}/t/alter", json=body, headers=WAIT)


async def test_given_an_empty_table_when_null_is_forbidden_then_its_column_says_so() -> None:
    async with leader() as one:
        made = await one.make()

        strict = await altered(one, {"op": "set_nullable", "name": "carrier", "nullable": False})
        named = {"op": "add_constraint", "name": "x", "not_null": "carrier"}
        again = await altered(one, named)
        relaxed = await altered(one, {"op": "set_nullable", "name": "carrier", "nullable": True})

        first = made["schema_version"]
        said = [
            (
                one["schema_version"] - first,
                [column["nullable"] for column in one["columns"] if column["name"] == "carrier"],
                one["constraints"],
            )
            for one in (strict.json(), again.json(), relaxed.json())
        ]
        assert said == [(2, [False], []), (2, [False], []), (4, [True], [])]


async def test_given_a_check_then_it_is_shown_with_the_names_of_now_and_gone_when_dropped() -> None:
    async with leader() as one:
        await one.make()
        rename = {"op": "rename_column", "name": "carrier", "new_name": "by-whom"}

        await altered(one, CHECK)
        renamed = await altered(one, rename)
        kept = await altered(one, {"op": "drop_column", "name": "by-whom"})
        dropped = await altered(one, {"op": "drop_constraint", "name": "known"})

        (check,) = renamed.json()["constraints"]
        assert check["expression"] == "\"by-whom\" in ('UA', 'AA') or id > 1"
        assert (check["state"], check["holds"]) == ("public", True)
        assert check["columns"] == ["by-whom", "id"]
        assert (kept.status_code, kept.json()["code"]) == (422, "invalid-schema-change")
        assert dropped.json()["constraints"] == []


@pytest.mark.parametrize("last", ["validate_constraint", "drop_constraint"])
async def test_given_a_check_that_is_not_valid_then_it_is_write_only_until_it_is_settled(
    last: str,
) -> None:
    async with leader() as one:
        await one.make()

        left = await altered(one, {**CHECK, "not_valid": True})
        taken = await altered(one, CHECK)
        ended = await altered(one, {"op": last, "name": "known"})

        (check,) = left.json()["constraints"]
        after = [(one["state"], one["holds"]) for one in ended.json()["constraints"]]
        assert (check["state"], check["holds"]) == ("write-only", False)
        assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")
        assert after == ([("public", True)] if last == "validate_constraint" else [])
