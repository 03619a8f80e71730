"""`if_exists`: what does not exist is an answer that changes nothing, and is kept under its key."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.metasrv.api.rig import TABLES, Server, leader, spec

KEY = {"Idempotency-Key": "k-1"}
WAIT = {"Prefer": "wait=10"}
RENAME = {"new_name": "u", "if_exists": True}
ALTER = {"operations": [{"op": "drop_column", "name": "carrier"}], "if_exists": True}
MISSES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "table": ("DELETE", f"{TABLES}/t?if_exists=true", None),
    "index": ("DELETE", f"{TABLES}/there/indexes/i?if_exists=true", None),
    "index of a missing table": ("DELETE", f"{TABLES}/t/indexes/i?if_exists=true", None),
    "schema": ("DELETE", "/v1/catalogs/main/schemas/s?if_exists=true", None),
    "schema of a missing catalog": ("DELETE", "/v1/catalogs/c/schemas/s?if_exists=true", None),
    "catalog": ("DELETE", "/v1/catalogs/c?if_exists=true&cascade=true", None),
    "rename": ("POST", f"{TABLES}/t/rename", RENAME),
    "rename in a missing schema": ("POST", "/v1/catalogs/main/schemas/s/tables/t/rename", RENAME),
    "alter": ("POST", f"{TABLES}/t/alter", ALTER),
}


async def _ask(one: Server, what: str, headers: dict[str, str] | None = None) -> httpx.Response:
    method, path, body = MISSES[what]
    return await one.client.request(method, path, json=body, headers=headers)


@pytest.mark.parametrize("what", MISSES)
@pytest.mark.parametrize("headers", [WAIT, {}], ids=["waits", "does not wait"])
async def test_given_nothing_there_when_changed_if_it_exists_then_204_and_nothing_is_stored(
    what: str, headers: dict[str, str]
) -> None:
    async with leader() as one:
        await one.make("there")
        version, revision = one.version, one.kv.revision

        answer = await _ask(one, what, headers)

        assert (answer.status_code, answer.content) == (204, b""), answer.text
        assert answer.headers["catalog-applied"] == "false"
        assert answer.headers["catalog-version"] == str(version)
        assert (one.version, one.kv.revision) == (version, revision)


@pytest.mark.parametrize("what", MISSES)
async def test_given_a_miss_when_its_key_is_repeated_then_the_same_answer_though_it_exists_now(
    what: str,
) -> None:
    async with leader() as one:
        await one.make("there")
        first = await _ask(one, what, KEY | WAIT)
        version = one.version
        await one.make("t")

        again = await _ask(one, what, KEY | WAIT)
        other = await one.client.post(TABLES, json=spec("x"), headers=KEY | WAIT)

        assert (first.status_code, again.status_code) == (204, 204), again.text
        assert again.headers["idempotency-replayed"] == "true"
        assert again.headers["catalog-applied"] == "false"
        assert again.headers["catalog-version"] == str(version)
        assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")
        assert (await one.client.get(f"{TABLES}/t")).status_code == 200


@pytest.mark.parametrize("what", ["table", "rename", "alter"])
async def test_given_a_table_when_changed_if_it_exists_then_it_is(what: str) -> None:
    async with leader() as one:
        await one.make("t")
        version = one.version

        answer = await _ask(one, what, WAIT)

        assert answer.status_code == (204 if what == "table" else 200), answer.text
        assert "catalog-applied" not in answer.headers
        assert one.version > version


async def test_given_a_miss_then_the_key_names_a_procedure_that_says_so() -> None:
    async with leader() as one:
        await _ask(one, "rename", KEY)

        (listed,) = (await one.client.get("/v1/procedures")).json()["procedures"]

        assert (listed["kind"], listed["state"]) == ("rename_table", "succeeded")
        assert listed["resource"] == {"type": "table", "id": "", "name": "main.public.t"}
        assert listed["result"]["applied"] is False


async def test_given_a_miss_when_planned_then_the_plan_is_empty_and_nothing_is_stored() -> None:
    async with leader() as one:
        revision = one.kv.revision

        plan = await one.client.delete(f"{TABLES}/t?if_exists=true&dry_run=true", headers=KEY)

        assert (plan.status_code, plan.json()["kind"]) == (200, None)
        assert plan.json()["resource"]["name"] == "main.public.t"
        assert one.kv.revision == revision


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/t/rename", {"new_name": "gone", "exchange": True}, "table-not-found"),
        ("/t/rename", {"new_name": "u", "new_schema": "gone"}, "not-found"),
        ("/t/alter", {"operations": [{"op": "drop_column", "name": "gone"}]}, None),
        ("/1t/rename", {"new_name": "u"}, "invalid-identifier"),
    ],
    ids=["the other table", "the other schema", "a column", "no identifier"],
)
async def test_given_anything_else_that_is_missing_then_it_is_refused_all_the_same(
    path: str, body: dict[str, Any], code: str | None
) -> None:
    async with leader() as one:
        await one.make("t")

        answer = await one.client.post(
            TABLES + path, json={**body, "if_exists": True}, headers=WAIT
        )

        assert answer.status_code >= 400, answer.text
        assert code in (None, answer.json()["code"])


async def test_given_a_version_that_is_required_when_nothing_is_there_then_412() -> None:
    async with leader() as one:
        answer = await one.client.delete(
            f"{TABLES}/t?if_exists=true", headers={"If-Match": '"t1024-1"'}
        )

        assert (answer.status_code, answer.json()["code"]) == (412, "version-mismatch")


async def test_given_drops_at_once_if_it_exists_then_all_succeed_and_one_is_made() -> None:
    """A drop that met the table at submit meets none under its locks, and says so."""
    async with leader() as one:
        await one.make("t")

        found = await asyncio.gather(*(_ask(one, "table", WAIT) for _ in range(4)))

        assert [answer.status_code for answer in found] == [204] * 4
        assert (await one.client.get(f"{TABLES}/t")).status_code == 404


@pytest.mark.parametrize("what", ["rename", "alter", "index of a missing table"])
async def test_given_a_table_that_goes_while_a_change_waits_then_it_ends_and_changes_nothing(
    what: str,
) -> None:
    async with leader() as one:
        await one.make("t")
        index = {"name": "i", "columns": ["carrier"]}
        await one.client.post(f"{TABLES}/t/indexes", json=index, headers=WAIT)

        drop, answer = await asyncio.gather(
            one.client.delete(f"{TABLES}/t", headers=WAIT), _ask(one, what, WAIT)
        )

        listed = (await one.client.get("/v1/procedures")).json()["procedures"]
        assert (drop.status_code, answer.status_code) == (204, 204), answer.text
        assert answer.headers["catalog-applied"] == "false"
        (ended,) = [each for each in listed if (each["result"] or {}).get("applied") is False]
        assert (ended["state"], ended["catalog_version"]) == ("succeeded", None)


async def test_given_a_schema_that_goes_while_its_drop_waits_then_204() -> None:
    async with leader() as one:
        await one.client.post("/v1/catalogs/main/schemas", json={"name": "s"}, headers=WAIT)

        found = await asyncio.gather(*(_ask(one, "schema", WAIT) for _ in range(3)))

        assert [answer.status_code for answer in found] == [204] * 3
