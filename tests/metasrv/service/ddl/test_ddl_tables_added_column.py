"""`POST T/alter` with elements: published state by state, every region told before each."""

from datetime import datetime
from typing import Any

import pytest

from metasrv_base.wire.node.orders import SetSchema
from tests.metasrv.api.rig import TABLES, leader
from tests.metasrv.service.ddl.alters import ADD

WAIT = {"prefer": "wait=10"}


def required(default: Any, type: str = "int32") -> dict[str, Any]:
    column = {"name": "seats", "type": type, "nullable": False, "default": default}
    return {"op": "add_column", "column": column}


async def test_given_a_table_when_a_column_is_added_then_every_region_has_been_told() -> None:
    async with leader() as one:
        made = await one.make()
        one.nodes.asked.clear()

        answer = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": [ADD]}, headers=WAIT
        )

        body = answer.json()
        told = [order for _, order in one.nodes.asked if isinstance(order, SetSchema)]
        regions = {region["region_id"] for region in made["regions"]}
        first = made["schema_version"]
        assert answer.status_code == 200
        assert [column["name"] for column in body["columns"]][:2] == ["id", "extra"]
        assert {column["state"] for column in body["columns"]} == {"public"}
        assert body["schema_version"] == first + 2
        assert sorted(
            (order.region_id, order.schema_version, order.schema_floor) for order in told
        ) == [
            (region, first + step, first + step - 1)
            for region in sorted(regions)
            for step in (1, 2)
        ]
        assert {len(order.columns) for order in told} == {len(body["columns"])}


async def test_given_a_default_when_a_column_is_added_then_it_is_what_old_rows_read_as() -> None:
    async with leader() as one:
        await one.make()
        operations = [required(100), {"op": "set_default", "name": "carrier", "default": "XX"}]

        answer = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": operations}, headers=WAIT
        )

        columns = {column["name"]: column for column in answer.json()["columns"]}
        seats, carrier = columns["seats"], columns["carrier"]
        assert (seats["default"], seats["origin_default"], seats["nullable"]) == (100, 100, False)
        assert (carrier["default"], carrier["origin_default"]) == ("XX", None)


@pytest.mark.case("online 47")
async def test_given_an_expression_when_a_column_is_added_then_it_is_evaluated_once() -> None:
    async with leader() as one:
        await one.make()
        now = required({"expression": "now()"}, "timestamp(ms)")

        answer = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": [now]}, headers=WAIT
        )

        (column,) = [one for one in answer.json()["columns"] if one["name"] == "seats"]
        assert column["default"] == column["origin_default"]
        assert datetime.fromisoformat(column["default"]).tzinfo is not None


@pytest.mark.case("online 49")
@pytest.mark.case("catalog 46")
async def test_given_a_column_when_dropped_then_it_is_gone_and_its_id_is_not_used_again() -> None:
    async with leader() as one:
        made = await one.make()
        taken = {column["id"] for column in made["columns"]}
        drop = {"op": "drop_column", "name": "carrier"}

        gone = await one.client.post(f"{TABLES}/t/alter", json={"operations": [drop]}, headers=WAIT)
        again = {"op": "add_column", "column": {"name": "carrier", "type": "string"}}
        back = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": [again]}, headers=WAIT
        )

        (column,) = [one for one in back.json()["columns"] if one["name"] == "carrier"]
        assert "carrier" not in {column["name"] for column in gone.json()["columns"]}
        assert column["id"] not in taken


@pytest.mark.case("catalog 45")
async def test_given_a_column_of_that_name_when_added_then_it_is_refused_and_nothing_stored() -> (
    None
):
    async with leader() as one:
        await one.make()
        again = {"op": "add_column", "column": {"name": "ID", "type": "int64"}}
        nowhere = {**ADD, "after": "nothing"}
        revision = one.kv.revision

        taken = await one.client.post(f"{TABLES}/t/alter", json={"operations": [again]})
        lost = await one.client.post(f"{TABLES}/t/alter", json={"operations": [nowhere]})

        assert (taken.status_code, taken.json()["code"]) == (409, "already-exists")
        assert (lost.status_code, lost.json()["code"]) == (422, "invalid-schema-change")
        assert one.kv.revision == revision
