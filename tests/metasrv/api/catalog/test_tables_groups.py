"""Partition groups: regions of one number of the tables in a tablespace share a node."""

from typing import Any

from tests.metasrv.api.rig import TABLES, Server, beat, leader, spec
from tests.metasrv.api.routes.failover_requests import ask

WAIT = {"prefer": "wait=10"}
SPACES = "/v1/catalogs/main/tablespaces"
HASHED = {"by": "hash", "columns": ["id"], "count": 3}


def grouped(name: str) -> dict[str, Any]:
    return spec(name, tablespace="orders", partition=HASHED)


async def post(one: Server, path: str, body: Any) -> None:
    answer = await one.client.post(path, json=body, headers=WAIT)
    assert answer.status_code in (200, 201), answer.text


async def leaders(one: Server, name: str) -> list[str]:
    route = (await one.client.get(f"{TABLES}/{name}/route")).json()
    return [region["leader"] for region in route["regions"]]


async def test_given_a_tablespace_when_tables_are_made_then_regions_of_a_number_share_a_node() -> (
    None
):
    """Each table alone, and several in one batch; the table before made the nodes uneven."""
    async with leader(nodes=3) as one:
        await post(one, SPACES, {"name": "orders"})
        await one.make("uneven")
        await post(one, TABLES, grouped("a"))
        await one.make("more")
        await post(one, TABLES, grouped("b"))
        table = {"catalog": "main", "schema": "public"}
        commands = [{"create_table": {**table, "table": grouped(name)}} for name in ("c", "d")]
        await post(one, "/v1/batch", {"commands": commands})

        first = await leaders(one, "a")
        assert sorted(first) == ["dn-1", "dn-2", "dn-3"]
        assert [await leaders(one, name) for name in ("b", "c", "d")] == [first] * 3


async def test_given_the_default_tablespace_then_tables_are_placed_by_load_alone() -> None:
    async with leader(nodes=3) as one:
        for name in ("a", "b", "c"):
            await one.make(name)

        found = {(await leaders(one, name))[0] for name in ("a", "b", "c")}
        assert found == {"dn-1", "dn-2", "dn-3"}


async def test_given_a_dead_node_then_regions_of_its_groups_move_together() -> None:
    async with leader(nodes=4) as one:
        await post(one, SPACES, {"name": "orders"})
        for name in ("a", "b", "c"):
            await post(one, TABLES, grouped(name))
        gone = (await leaders(one, "a"))[0]
        await one.make("uneven", partition=HASHED)
        one.clock.ahead_ms += 120_000
        for node in sorted({"dn-1", "dn-2", "dn-3", "dn-4"} - {gone}):
            one.term.nodes.heartbeat(beat(node, 2))

        done = await ask(one, node_id=gone, max_parallel=1, headers=WAIT)

        assert done.status_code == 200, done.text
        moved = await leaders(one, "a")
        assert gone not in moved
        assert [await leaders(one, name) for name in ("b", "c")] == [moved] * 2
