"""Tables with copies over REST: made, refused for too few nodes, altered, and what they lack."""

import pytest

from tests.metasrv.api.rig import TABLES, leader, spec
from tests.metasrv.service.cluster.copied import copied_region

T = f"{TABLES}/t"
WAIT = {"prefer": "wait=10"}
PLAN = {"dry_run": "true"}
COLUMN = {"op": "add_column", "column": {"name": "extra", "type": "int64"}}


async def test_given_nodes_when_a_table_with_copies_is_made_then_its_route_has_them() -> None:
    async with leader() as one:
        body = spec(replicas=2, min_in_sync=1)

        made = await one.client.post(TABLES, json=body, headers=WAIT)

        assert made.status_code == 201, made.text
        table = made.json()
        (region,) = table["regions"]
        assert (table["replicas"], table["min_in_sync"], table["inherited"]) == (2, 1, [])
        assert [copy["role"] for copy in region["copies"]] == ["in-sync"]


async def test_given_fewer_nodes_than_copies_when_made_then_409_says_how_many_can() -> None:
    async with leader() as one:
        refused = await one.client.post(TABLES, json=spec(replicas=15), headers=WAIT)

        assert (refused.status_code, refused.json()["code"]) == (409, "node-not-eligible")
        assert refused.json()["detail"].startswith("15 copies need as many nodes, and 2 can take")
        assert refused.json()["facts"]["eligible"] == 2


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/alter", {"operations": [COLUMN]}),
        ("/check", {}),
        ("/indexes", {"name": "i", "columns": ["carrier"]}),
        ("/import", {"paths": ["/data/flights.parquet"]}),
    ],
)
async def test_given_copies_when_changed_then_it_is_planned(
    path: str, body: dict[str, object]
) -> None:
    async with leader() as one:
        await copied_region(one)

        planned = await one.client.post(f"{T}{path}", json=body, params=PLAN)

        assert planned.status_code == 200, planned.text
