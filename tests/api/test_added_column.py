"""`POST T/alter` with add_column: published once, every region told before the answer."""

from base.wire.orders import OpenRegion
from tests.api.rig import TABLES, leader

WAIT = {"prefer": "wait=10"}
ADD = {"op": "add_column", "column": {"name": "extra", "type": "int64"}, "after": "id"}


async def test_given_a_table_when_a_column_is_added_then_every_region_has_been_told() -> None:
    async with leader() as one:
        made = await one.make()
        one.nodes.asked.clear()

        answer = await one.client.post(
            f"{TABLES}/t/alter", json={"operations": [ADD]}, headers=WAIT
        )

        body = answer.json()
        opened = [order for _, order in one.nodes.asked if isinstance(order, OpenRegion)]
        assert answer.status_code == 200
        assert [column["name"] for column in body["columns"]][:2] == ["id", "extra"]
        assert body["schema_version"] == made["schema_version"] + 1
        assert {order.region_id for order in opened} == {r["region_id"] for r in made["regions"]}
        assert {len(order.columns) for order in opened} == {len(body["columns"])}


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
