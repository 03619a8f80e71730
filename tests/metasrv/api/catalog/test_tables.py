"""Tables over HTTP: the whole life of one, and what is refused at once."""

import asyncio
from typing import Any

import pytest

from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"Prefer": "wait=10"}


async def test_given_a_server_when_a_table_lives_and_dies_then_each_answer_shows_it() -> None:
    async with leader() as one:
        made = await one.make("flights", partition={"by": "hash", "columns": ["id"], "count": 4})
        assert made["catalog"] == "main"
        assert made["schema"] == "public"
        assert [region["state"] for region in made["regions"]] == ["open"] * 4
        assert {region["address"] for region in made["regions"]} == {
            "http://dn-1:9000",
            "http://dn-2:9000",
        }

        renamed = await one.client.post(
            f"{TABLES}/flights/rename", json={"new_name": "trips"}, headers=WAIT
        )
        assert renamed.status_code == 200, renamed.text
        assert renamed.json()["name"] == "trips"
        altered = await one.client.post(
            f"{TABLES}/trips/alter",
            json={
                "operations": [
                    {"op": "set_options", "options": {"app.x": "30d"}},
                    {"op": "rename_column", "name": "carrier", "new_name": "airline"},
                ]
            },
            headers=WAIT,
        )
        assert altered.status_code == 200, altered.text
        assert altered.json()["options"] == {"app.x": "30d"}
        assert altered.headers["etag"] == '"t1024-3"'

        dropped = await one.client.delete(f"{TABLES}/trips", headers=WAIT)
        assert dropped.status_code == 204
        assert dropped.headers["catalog-version"] == str(one.version)
        assert (await one.client.get(f"{TABLES}/trips")).status_code == 404
        by_id = (await one.client.get(f"/v1/tables/{made['id']}")).json()
        assert by_id["dropped_at"] is not None

        back = await one.client.post(
            f"{TABLES}/trips/undrop", json={"new_name": "again"}, headers=WAIT
        )
        assert back.status_code == 200, back.text
        assert back.json()["id"] == made["id"]
        route = (await one.client.get(f"{TABLES}/again/route")).json()
        assert [region["epoch"] for region in route["regions"]] == [2] * 4


async def test_given_no_preference_when_creating_then_the_procedure_is_answered() -> None:
    async with leader() as one:
        answer = await one.client.post(TABLES, json=spec())

        assert answer.status_code == 202
        body = answer.json()
        assert answer.headers["location"] == f"/v1/procedures/{body['id']}"
        ended = await one.client.get(
            answer.headers["location"],
            headers={"If-None-Match": '"other"', "Prefer": "wait=0"},
        )
        assert ended.json()["kind"] == "create_table"


async def names_of(one: Server) -> dict[str, int]:
    listed: list[Any] = (await one.client.get(TABLES)).json()["tables"]
    return {table["name"]: table["id"] for table in listed}


@pytest.mark.case("online 65")
async def test_given_two_tables_that_exchange_names_then_no_version_is_without_either() -> None:
    async with leader() as one:
        for name in ("a", "b"):
            await one.make(name)
        before, first = await names_of(one), one.version

        async def look() -> None:
            while one.version == first:
                assert sorted(await names_of(one)) == ["a", "b"]

        body = {"new_name": "b", "exchange": True}
        ask = one.client.post(f"{TABLES}/a/rename", json=body, headers=WAIT)
        answer, _ = await asyncio.gather(ask, look())
        after = await names_of(one)

        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == before["a"]
        assert after == {"a": before["b"], "b": before["a"]}
        assert one.version == first + 1, "in one version of the catalog"
        kept = [one.state.follower.at(version) for version in (first, first + 1)]
        found = [known.find("main", "public", name) for known in kept if known for name in "ab"]
        assert len(found) == 4
        assert None not in found


async def test_given_names_that_cannot_be_exchanged_when_asked_then_refused() -> None:
    async with leader() as one:
        await one.make("a")
        codes = [
            (await one.client.post(f"{TABLES}/a/rename", json=body, headers=WAIT)).json()["code"]
            for body in (
                {"new_name": "b", "exchange": True},
                {"new_name": "a", "exchange": True},
                {"new_name": "a", "exchange": 1},
            )
        ]

        assert codes == ["table-not-found", "invalid-schema-change", "invalid-request"]
