"""T/indexes: published state by state, public when it is answered, gone when it is dropped."""

import asyncio
from itertools import groupby
from typing import Any

import httpx
import pytest

from metasrv_base.elements.states import ElementState
from metasrv_base.wire.node.orders import SetSchema
from tests.metasrv.api.rig import TABLES, Server, leader

WAIT = {"prefer": "wait=10"}
INDEXES = f"{TABLES}/t/indexes"
SET_OPTION = {"op": "set_options", "options": {"app.x": "1"}}
BY_CARRIER = {"name": "by_carrier", "columns": ["carrier", "id"]}


ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC = ElementState


def states(one: Server, table_id: int) -> list[ElementState]:
    """The states that the versions have its only index in, one after another."""
    catalogs = (one.state.follower.at(version) for version in range(1, one.version + 1))
    infos = [each.tables[table_id].info for each in catalogs if each and table_id in each.tables]
    found = [info.indexes[0].state if info.indexes else ABSENT for info in infos]
    return [state for state, _ in groupby(found)]


async def create(one: Server, **body: Any) -> httpx.Response:
    return await one.client.post(INDEXES, json={**BY_CARRIER, **body}, headers=WAIT)


@pytest.mark.case("online 32")
@pytest.mark.case("catalog 75", "catalog 78")
async def test_given_an_empty_table_when_indexed_then_each_state_is_published_to_each_region() -> (
    None
):
    async with leader() as one:
        made = await one.make()
        one.nodes.asked.clear()

        answer = await create(one)

        first = made["schema_version"]
        told = [order for _, order in one.nodes.asked if isinstance(order, SetSchema)]
        body = answer.json()
        assert answer.status_code == 201, body
        shown = {"id": 1, "unique": False, "state": "public", "coverage": None, "duplicates": None}
        assert body == {**BY_CARRIER, **shown}
        assert answer.headers["location"] == f"{INDEXES}/by_carrier"
        assert {order.schema_version for order in told} == {first + step for step in (1, 2, 3)}
        assert {tuple(order.indexes) for order in told} == {(1,)}
        listed = (await one.client.get(INDEXES)).json()
        assert listed["indexes"] == [body]
        assert (await one.client.get(f"{INDEXES}/by_carrier")).json() == body


async def test_given_an_index_that_comes_and_goes_then_versions_have_each_state_in_order() -> None:
    async with leader() as one:
        made = await one.make()

        await create(one)
        coming = states(one, made["id"])
        await one.client.delete(f"{INDEXES}/by_carrier", headers=WAIT)
        going = states(one, made["id"])[len(coming) - 1 :]

        assert coming == [ABSENT, DELETE_ONLY, WRITE_ONLY, PUBLIC]
        assert going == [PUBLIC, WRITE_ONLY, DELETE_ONLY, ABSENT]


@pytest.mark.case("online 35")
@pytest.mark.case("catalog 84")
async def test_given_an_index_when_another_takes_its_name_then_409() -> None:
    async with leader() as one:
        await one.make()
        await create(one)

        again = await create(one, name="BY_CARRIER", columns=["id"])

        assert (again.status_code, again.json()["code"]) == (409, "already-exists")


@pytest.mark.case("online 35")
async def test_given_two_indexes_of_one_name_at_once_then_one_of_them_is_made() -> None:
    async with leader() as one:
        await one.make()

        both = await asyncio.gather(create(one), create(one, columns=["id"]))

        assert sorted(answer.status_code for answer in both) == [201, 409]
        listed = (await one.client.get(INDEXES)).json()["indexes"]
        assert [index["name"] for index in listed] == ["by_carrier"]


@pytest.mark.case("input 59")
async def test_given_an_index_on_its_way_when_asked_for_again_then_it_is_public_first() -> None:
    async with leader() as one:
        await one.make()

        both = await asyncio.gather(*(create(one, if_not_exists=True) for _ in range(2)))

        assert sorted(answer.status_code for answer in both) == [200, 201]
        assert {answer.json()["state"] for answer in both} == {"public"}


async def test_given_an_index_when_asked_for_if_it_does_not_exist_then_only_another_is_made() -> (
    None
):
    async with leader() as one:
        await one.make()
        first = await create(one, if_not_exists=True)
        revision = one.kv.revision

        again = await create(one, if_not_exists=True)
        other = await create(one, if_not_exists=True, columns=["id"])

        assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
        assert again.json() == first.json()
        assert one.kv.revision == revision


async def test_given_a_public_index_when_validated_then_nothing_is_to_be_done() -> None:
    async with leader() as one:
        await one.make()
        await create(one)
        revision = one.kv.revision

        done = await one.client.post(f"{INDEXES}/by_carrier/validate", headers=WAIT)
        absent = await one.client.post(f"{INDEXES}/nothing/validate", headers=WAIT)
        wrong = await create(one, name="other", not_valid=True)

        assert (done.status_code, done.json()["state"]) == (200, "public")
        assert (absent.status_code, absent.json()["code"]) == (404, "not-found")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid-request")
        assert one.kv.revision == revision


@pytest.mark.case("catalog 88")
async def test_given_an_index_when_dropped_then_it_is_gone_and_its_id_is_dead() -> None:
    async with leader() as one:
        await one.make()
        await create(one)
        one.nodes.asked.clear()

        gone = await one.client.delete(f"{INDEXES}/by_carrier", headers=WAIT)
        next_one = await create(one)

        told = [order for _, order in one.nodes.asked if isinstance(order, SetSchema)]
        assert gone.status_code == 204
        assert {tuple(order.dead_indexes) for order in told} >= {(), (1,)}
        assert next_one.json()["id"] == 2
        absent = await one.client.delete(f"{INDEXES}/nothing", headers=WAIT)
        assert (absent.status_code, absent.json()["code"]) == (404, "not-found")


@pytest.mark.case("input 60")
@pytest.mark.case("catalog 85", "catalog 86")
async def test_given_an_index_that_no_table_can_have_then_it_is_refused() -> None:
    async with leader() as one:
        await one.make(partition={"by": "hash", "columns": ["id"], "count": 2})
        revision = one.kv.revision

        found = [
            await create(one, columns=["nothing"]),
            await create(one, columns=[]),
            await create(one, columns=["id", "id"]),
            await create(one, name="no good"),
            await create(one, columns=["carrier"], unique=True),
        ]

        assert [(answer.status_code, answer.json()["code"]) for answer in found] == [
            (422, "invalid-schema-change"),
            (422, "invalid-request"),
            (422, "invalid-request"),
            (422, "invalid-identifier"),
            (422, "unique-needs-partition-columns"),
        ]
        assert one.kv.revision == revision


async def test_given_changes_of_a_table_when_procedures_are_listed_then_each_is_told() -> None:
    async with leader() as one:
        await one.make()
        await create(one)
        operations = [
            {"op": "add_column", "column": {"name": name, "type": "string"}} for name in "abcde"
        ]
        for method, path, body in (
            ("POST", f"{TABLES}/t/alter", {"operations": operations}),
            ("POST", f"{TABLES}/t/alter", {"operations": [SET_OPTION]}),
            ("DELETE", f"{INDEXES}/by_carrier", None),
            ("POST", f"{TABLES}/t/rename", {"new_name": "u"}),
        ):
            answer = await one.client.request(method, path, json=body, headers=WAIT)
            assert answer.status_code < 300, answer.text

        listed = (await one.client.get("/v1/procedures")).json()["procedures"]

        assert {(each["kind"], each["change"]) for each in listed} == {
            ("create_table", None),
            ("create_index", "by_carrier"),
            ("alter_table", "add column a, add column b, add column c, 2 more"),
            ("alter_table", "set options"),
            ("drop_index", "by_carrier"),
            ("rename_table", "to public.u"),
        }
