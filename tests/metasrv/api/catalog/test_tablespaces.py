"""Tablespaces over HTTP: they come and go with their catalog, and by themselves."""

import pytest

from tests.metasrv.api.rig import Server, leader

WAIT = {"prefer": "wait=10"}
CATALOGS = "/v1/catalogs"
SPACES = f"{CATALOGS}/main/tablespaces"
ORDERS = f"{SPACES}/orders"


async def make(one: Server, name: str = "orders", catalog: str = "main") -> int:
    path = f"{CATALOGS}/{catalog}/tablespaces"
    answer = await one.client.post(path, json={"name": name, "comment": "c"}, headers=WAIT)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{path}/{name}"
    return int(answer.json()["id"])


async def test_given_a_new_catalog_then_its_default_tablespace_came_in_the_same_version() -> None:
    async with leader() as one:
        before = one.version
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        path = f"{CATALOGS}/acme/tablespaces"
        body = (await one.client.get(f"{path}/default")).json()
        past = await one.client.get(path, params={"as_of": f"version:{before}"})
        changes = (await one.client.get("/v1/catalog/versions")).json()["changes"]

        assert one.version == before + 1
        assert (body["name"], body["catalog"], body["comment"]) == ("default", "acme", None)
        assert past.status_code == 404
        assert changes[0]["text"] == "create catalog acme; create schema acme.public"


async def test_given_a_catalog_with_tablespaces_when_dropped_then_they_go_with_it() -> None:
    async with leader() as one:
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        first = await make(one, catalog="acme")
        before = one.version
        gone = await one.client.delete(f"{CATALOGS}/acme", headers=WAIT)
        after = one.version
        await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        spaces = (await one.client.get(f"{CATALOGS}/acme/tablespaces")).json()["tablespaces"]
        second = await make(one, catalog="acme")

        assert (gone.status_code, after) == (204, before + 1)
        assert [space["name"] for space in spaces] == ["default"]
        assert second > first


@pytest.mark.parametrize("change", ["alter", "rename", "drop"])
async def test_given_a_tablespace_when_changed_then_its_id_stays(change: str) -> None:
    async with leader() as one:
        number = await make(one)
        if change == "alter":
            answer = await one.client.patch(ORDERS, json={"comment": None}, headers=WAIT)
            body = answer.json()
            assert (body["id"], body["comment"], body["version"]) == (number, None, 2)
        elif change == "rename":
            answer = await one.client.post(f"{ORDERS}/rename", json={"new_name": "o"}, headers=WAIT)
            body = answer.json()
            assert (body["id"], body["name"], body["version"]) == (number, "o", 2)
            assert (await one.client.get(ORDERS)).status_code == 404
        else:
            answer = await one.client.delete(ORDERS, headers=WAIT)
            assert answer.status_code == 204
            assert await make(one) > number


async def test_given_wrong_requests_then_each_is_refused_with_its_reason() -> None:
    async with leader() as one:
        await make(one)
        name = {"name": "orders"}
        nowhere = await one.client.post(f"{CATALOGS}/mian/tablespaces", json=name, headers=WAIT)
        taken = await one.client.post(SPACES, json=name, headers=WAIT)
        stands = await one.client.post(
            SPACES, json={"name": "orders", "comment": "c", "if_not_exists": True}, headers=WAIT
        )
        near = await one.client.get(f"{SPACES}/order")
        reserved = await one.client.post(SPACES, json={"name": "__o"}, headers=WAIT)
        default = f"{SPACES}/default"
        renamed = await one.client.post(f"{default}/rename", json={"new_name": "o"}, headers=WAIT)
        dropped = await one.client.delete(default, headers=WAIT)
        missed = await one.client.delete(f"{SPACES}/nope?if_exists=true", headers=WAIT)

        assert (nowhere.status_code, nowhere.json()["did_you_mean"]) == (404, "main")
        assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")
        assert stands.status_code == 200
        assert (near.status_code, near.json()["did_you_mean"]) == (404, "orders")
        assert reserved.json()["errors"][0]["code"] == "reserved-name"
        assert {renamed.json()["code"], dropped.json()["code"]} == {"object-in-use"}
        assert (missed.status_code, missed.headers["catalog-applied"]) == (204, "false")


async def test_given_changes_then_the_history_tells_them() -> None:
    async with leader() as one:
        await make(one)
        await one.client.patch(ORDERS, json={"comment": "d"}, headers=WAIT)
        await one.client.post(f"{ORDERS}/rename", json={"new_name": "o"}, headers=WAIT)
        await one.client.delete(f"{SPACES}/o", headers=WAIT)
        changes = (await one.client.get("/v1/catalog/versions?catalog=main")).json()["changes"]

        assert [change["text"] for change in changes[:4]] == [
            "drop tablespace main.o",
            "rename tablespace main.orders to main.o",
            "alter tablespace main.orders: comment",
            "create tablespace main.orders",
        ]
