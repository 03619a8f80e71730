"""Catalogs over HTTP: made, dropped, and dropped with all that they hold."""

import pytest

from tests.metasrv.api.rig import Server, leader, spec

WAIT = {"prefer": "wait=10"}
CATALOGS = "/v1/catalogs"
ACME = f"{CATALOGS}/acme"
SALES = f"{ACME}/schemas/sales"


async def fill(one: Server) -> int:
    """acme.sales.t; its id."""
    await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
    await one.client.post(f"{ACME}/schemas", json={"name": "sales"}, headers=WAIT)
    made = await one.client.post(f"{SALES}/tables", json=spec("t"), headers=WAIT)
    assert made.status_code == 201
    return int(made.json()["id"])


async def test_given_a_name_when_a_catalog_is_made_then_it_is_there_once() -> None:
    async with leader() as one:
        made = await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        again = await one.client.post(CATALOGS, json={"name": "acme"}, headers=WAIT)
        same = {"name": "acme", "if_not_exists": True}
        stands = await one.client.post(CATALOGS, json=same, headers=WAIT)

        assert (made.status_code, made.headers["location"]) == (201, ACME)
        assert (again.status_code, again.json()["code"]) == (409, "already-exists")
        assert (stands.status_code, stands.json()["id"]) == (200, made.json()["id"])


@pytest.mark.parametrize("path", [ACME, SALES])
@pytest.mark.case("catalog 109")
async def test_given_it_holds_something_when_dropped_then_only_with_cascade(path: str) -> None:
    async with leader() as one:
        await fill(one)

        kept = await one.client.delete(path, headers=WAIT)
        gone = await one.client.delete(f"{path}?cascade=true", headers=WAIT)

        assert (kept.status_code, kept.json()["code"]) == (409, "not-empty")
        assert gone.status_code == 204
        assert (await one.client.get(path)).status_code == 404
        assert (await one.client.get(f"{SALES}/tables/t")).status_code == 404


@pytest.mark.parametrize("path", [ACME, SALES])
@pytest.mark.case("catalog 109")
async def test_given_a_cascade_under_way_then_nothing_of_it_is_seen_or_made(path: str) -> None:
    async with leader() as one:
        await fill(one)
        one.nodes.gate.clear()
        one.nodes.reached.clear()

        await one.client.delete(f"{path}?cascade=true")
        await one.nodes.reached.wait()
        by_name = await one.client.get(f"{SALES}/tables/t")
        listed = await one.client.get(f"{SALES}/tables")
        regions = await one.client.get("/v1/regions")
        made = await one.client.post(f"{SALES}/tables", json=spec("u"))
        one.nodes.gate.set()

        assert (by_name.status_code, listed.status_code) == (404, 404)
        assert regions.json()["regions"] == []
        assert made.status_code in (404, 409)


async def test_given_a_plan_of_a_cascade_then_it_has_a_child_for_each_table() -> None:
    async with leader() as one:
        await fill(one)

        plan = (await one.client.delete(f"{ACME}?cascade=true&dry_run=true")).json()

        public, schema = sorted(plan["children"], key=lambda child: child["resource"]["name"])
        steps = [step["step"] for step in plan["steps"]]
        assert public["children"] == []
        assert [child["kind"] for child in schema["children"]] == ["drop_table"]
        assert steps == ["drop", "look", "submit", "submit", "gather", "look"]
