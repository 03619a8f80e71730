"""Tables in placements and tablespaces: what they name, what they keep from being dropped."""

from typing import Any

import httpx
import pytest

from tests.metasrv.api.held_up import create_held_up, end_of
from tests.metasrv.api.rig import TABLES, Server, leader, spec

WAIT = {"prefer": "wait=10"}
HOT = {"name": "hot", "engine": "lsm", "options": {"memtable_bytes": 1 << 20}}
COLD = {"name": "cold", "engine": "lsm"}
FAST = "/v1/placements/fast"
SPACE = "/v1/catalogs/main/tablespaces/orders"
BOTH: dict[str, Any] = {"placement": "fast", "tablespace": "orders"}


async def post(one: Server, path: str, body: dict[str, Any]) -> httpx.Response:
    return await one.client.post(path, json=body, headers=WAIT)


async def prepare(one: Server, **more: Any) -> None:
    """The placement `fast`, with two profiles, and the tablespace `main.orders`."""
    placement = {"name": "fast", "storage_profiles": [HOT, COLD], **more}
    assert (await post(one, "/v1/placements", placement)).status_code == 201
    space = await post(one, "/v1/catalogs/main/tablespaces", {"name": "orders"})
    assert space.status_code == 201


async def test_given_a_table_that_names_its_place_then_it_has_the_profile_and_shows_the_names() -> (
    None
):
    async with leader() as one:
        await prepare(one)

        made = await post(one, TABLES, spec("t", **BOTH, storage_profile="cold"))
        first = await post(one, TABLES, spec("u", **BOTH))

        assert made.status_code == 201, made.text
        shown = {"placement": "fast", "storage_profile": "cold", "tablespace": "orders"}
        assert shown.items() <= made.json().items()
        assert first.json()["storage_profile"] == "hot", "the first of its placement"
        assert first.json()["engine_options"] == HOT["options"]
        assert (await one.client.get(f"{TABLES}/u")).json() == first.json()
        again = await post(one, TABLES, spec("u", **BOTH, if_not_exists=True))
        assert again.status_code == 200
        other = await post(one, TABLES, spec("u", if_not_exists=True))
        assert other.json()["code"] == "schema-conflict"


async def test_given_a_table_that_names_nothing_then_it_uses_nothing() -> None:
    async with leader() as one:
        await prepare(one)
        made = (await post(one, TABLES, spec("t", placement="default"))).json()

        assert (made["placement"], made["storage_profile"], made["tablespace"]) == (None,) * 3
        assert (await one.client.delete(FAST, headers=WAIT)).status_code == 204


@pytest.mark.parametrize(
    ("fields", "status", "code", "hint"),
    [
        ({"placement": "fats"}, 404, "not-found", "fast"),
        ({"tablespace": "order"}, 404, "not-found", "orders"),
        ({"storage_profile": "hot"}, 422, "invalid-request", None),
        ({"placement": "fast", "storage_profile": "cool"}, 422, "invalid-request", "cold"),
    ],
)
@pytest.mark.case("catalog 72")
async def test_given_a_name_that_nothing_bears_then_the_create_is_refused(
    fields: dict[str, str], status: int, code: str, hint: str | None
) -> None:
    async with leader() as one:
        await prepare(one)
        refused = await post(one, TABLES, spec("t", **fields))

        assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text
        assert refused.json().get("did_you_mean") == hint


@pytest.mark.case("catalog 104")
async def test_given_a_table_in_them_then_neither_is_dropped_until_it_is() -> None:
    async with leader() as one:
        await prepare(one)
        await post(one, TABLES, spec("t", **BOTH))
        refused = [
            await one.client.delete(FAST, headers=WAIT),
            await one.client.delete(SPACE, headers=WAIT),
            await one.client.patch(FAST, json={"storage_profiles": [COLD]}, headers=WAIT),
        ]
        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        dropped = [await one.client.delete(path, headers=WAIT) for path in (FAST, SPACE)]

        assert [each.json()["code"] for each in refused] == ["object-in-use"] * 3
        assert [each.status_code for each in dropped] == [204, 204]


@pytest.mark.parametrize("path", [FAST, SPACE])
async def test_given_a_create_on_its_way_then_a_drop_of_its_place_waits_and_is_refused(
    path: str,
) -> None:
    async with leader() as one:
        await prepare(one)
        creating = await create_held_up(one, **BOTH)
        dropping = await one.client.delete(path)
        waiting = (await one.client.get(dropping.headers["location"])).json()
        one.nodes.gate.set()
        made = await end_of(one, creating)
        dropped = await end_of(one, dropping.headers["location"])

        assert waiting["waiting_for"][0]["kind"] == "lock"
        assert (made["state"], dropped["state"]) == ("succeeded", "failed")
        assert dropped["error"]["code"] == "object-in-use"


async def test_given_other_names_then_the_table_shows_them_and_is_the_same() -> None:
    async with leader() as one:
        await prepare(one)
        made = await post(one, TABLES, spec("t", **BOTH))
        await post(one, f"{FAST}/rename", {"new_name": "slow"})
        await post(one, f"{SPACE}/rename", {"new_name": "sales"})
        table = await one.client.get(f"{TABLES}/t")

        assert (table.json()["placement"], table.json()["tablespace"]) == ("slow", "sales")
        assert table.json()["version"] == made.json()["version"]


async def test_given_a_dropped_table_when_its_placement_goes_then_it_does_not_come_back() -> None:
    async with leader() as one:
        await prepare(one)
        await post(one, TABLES, spec("t", **BOTH))
        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        back = await post(one, f"{TABLES}/t/undrop", {})
        assert back.status_code == 200, back.text
        assert (back.json()["placement"], back.json()["tablespace"]) == ("fast", "orders")

        await one.client.delete(f"{TABLES}/t", headers=WAIT)
        await one.client.delete(SPACE, headers=WAIT)
        refused = await post(one, f"{TABLES}/t/undrop", {})

        assert (refused.status_code, refused.json()["code"]) == (404, "not-found")
        assert "tablespace" in refused.json()["detail"]


async def test_given_a_placement_of_several_partitions_then_a_table_that_says_none_has_them() -> (
    None
):
    async with leader() as one:
        await prepare(one, partitions=3)
        plain = (await post(one, TABLES, spec("t", placement="fast"))).json()
        own = {"by": "hash", "columns": ["id"], "count": 2}
        said = (await post(one, TABLES, spec("u", placement="fast", partition=own))).json()

        assert plain["partition"] == {"by": "hash", "columns": ["id"], "count": 3}
        assert len(plain["regions"]) == 3
        assert said["partition"] == own


async def test_given_a_batch_then_a_table_comes_with_its_placement_in_one_version() -> None:
    async with leader() as one:
        before = one.version
        placement = {"name": "fast", "storage_profiles": [HOT], "partitions": 2}
        table = spec("t", **BOTH, colocation_columns=["id"])
        done = await post(
            one,
            "/v1/batch",
            {
                "commands": [
                    {"create_placement": placement},
                    {"create_tablespace": {"catalog": "main", "tablespace": {"name": "orders"}}},
                    {"create_table": {"catalog": "main", "schema": "public", "table": table}},
                ]
            },
        )
        shown = (await one.client.get(f"{TABLES}/t")).json()
        used = await one.client.delete(FAST, headers=WAIT)

        assert (done.status_code, one.version) == (200, before + 1), done.text
        assert (shown["placement"], shown["tablespace"]) == ("fast", "orders")
        assert shown["colocation_columns"] == ["id"]
        assert shown["partition"]["columns"] == ["id"]
        assert used.json()["code"] == "object-in-use"
