"""Cases 21, 81 and 90: what time takes away, and where a node is by now."""

import pytest

from keys.model.records import IdempotencyKey
from metasrv.leadership.retention import Retention
from tests.metasrv.api.rig import Server, leader, registration


def keys_of(server: Server) -> int:
    start, end = IdempotencyKey.under()
    return sum(start <= item.key < end for item in server.kv.dump())


async def tidy(server: Server) -> int:
    return await Retention(server.term).tidy(server.clock.wall_ms())


@pytest.mark.case("greptime 21")
async def test_given_an_idempotency_key_when_its_time_is_over_then_it_goes_and_not_before() -> None:
    async with leader(nodes=1) as one:
        body = {"name": "sales"}
        path, key = "/v1/catalogs/main/schemas", {"Idempotency-Key": "k-1"}
        first = await one.client.post(path, json=body, headers={**key, "Prefer": "wait=10"})
        assert first.status_code == 201
        one.clock.ahead_ms += one.term.settings.values.history_retention_ms - 60_000
        early, kept = await tidy(one), keys_of(one)
        one.clock.ahead_ms += 120_000
        due, left = await tidy(one), keys_of(one)

        assert (early, kept) == (0, 1)
        assert (due, left) == (1, 0)


@pytest.mark.case("greptime 81", "greptime 90")
async def test_given_a_node_at_another_address_when_asked_for_then_routes_need_no_write() -> None:
    async with leader(nodes=1) as one:
        await one.make("t")
        version = one.version
        moved = registration("dn-1", incarnation="i-2", address="http://elsewhere:9001")

        await one.term.nodes.register(moved)

        assert one.term.nodes.entry("dn-1").node.address == "http://elsewhere:9001"
        assert one.version == version
