"""`POST T/indexes/{index}/undrop` and `T/columns/{column}/undrop`: back in the grace time."""

import asyncio

import pytest

from tests.metasrv.api.rig import TABLES, Server, leader

WAIT = {"prefer": "wait=10"}
INDEX = f"{TABLES}/t/indexes/by_carrier"


async def with_index(one: Server) -> None:
    await one.make()
    body = {"name": "by_carrier", "columns": ["carrier", "id"]}
    made = await one.client.post(f"{TABLES}/t/indexes", json=body, headers=WAIT)
    assert made.status_code == 201, made.json()


async def until_in_grace(one: Server, procedure: str) -> None:
    async with asyncio.timeout(240):
        while (await one.client.get(f"/v1/procedures/{procedure}")).json()["step"] != "grace":
            pass


@pytest.mark.parametrize("what", ["index", "column"])
async def test_given_a_drop_in_its_grace_time_when_undropped_then_it_is_public_again(
    what: str,
) -> None:
    async with leader() as one:
        await with_index(one)
        before = (await one.client.get(f"{TABLES}/t")).json()
        if what == "index":
            begun = await one.client.delete(f"{INDEX}?grace_s=600")
            path = INDEX
        else:
            drop = {"operations": [{"op": "drop_column", "name": "carrier"}], "grace_s": 600}
            begun = await one.client.post(f"{TABLES}/t/alter", json=drop)
            path = f"{TABLES}/t/columns/carrier"

        await until_in_grace(one, begun.json()["id"])
        hidden = (await one.client.get(INDEX)).json()["state"]
        back = await one.client.post(f"{path}/undrop", headers=WAIT)

        after = (await one.client.get(f"{TABLES}/t")).json()
        assert (begun.status_code, hidden) == (202, "write-only")
        assert (back.status_code, back.json()["state"]) == (200, "cancelled"), back.json()
        assert back.json()["id"] == begun.json()["id"]
        assert (after["columns"], after["indexes"]) == (before["columns"], before["indexes"])


async def test_given_nothing_that_is_dropped_when_undropped_then_404() -> None:
    async with leader() as one:
        await with_index(one)

        public = await one.client.post(f"{INDEX}/undrop")
        await one.client.delete(INDEX, headers=WAIT)
        gone = await one.client.post(f"{INDEX}/undrop")
        no_table = await one.client.post(f"{TABLES}/u/columns/a/undrop")

        found = [(one.status_code, one.json()["code"]) for one in (public, gone, no_table)]
        assert found == [(404, "not-found"), (404, "not-found"), (404, "table-not-found")]


async def test_given_a_grace_time_beyond_the_bound_then_it_is_refused() -> None:
    async with leader() as one:
        await with_index(one)

        refused = await one.client.delete(f"{INDEX}?grace_s=1801")

        assert (refused.status_code, refused.json()["code"]) == (422, "invalid-request")
