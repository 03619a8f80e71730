"""A dropped table past its retention: the ticker purges it, and then nobody finds it any more."""

import asyncio
from typing import Any

import pytest

from metasrv.leadership.housekeeping import housekeeping
from metasrv.leadership.purging import purge_dropped
from metasrv_base.wire.node.orders import DropRegion
from tests.metasrv.api.fakes import ShiftedClock
from tests.metasrv.api.rig import TABLES, Server, beat, leader

DAY_MS = 86_400_000
WAIT = {"Prefer": "wait=10"}


async def dropped(one: Server, name: str = "t") -> dict[str, Any]:
    table = await one.make(name)
    assert (await one.client.delete(f"{TABLES}/{name}", headers=WAIT)).status_code == 204
    return table


async def after(one: Server, ms: int, heard: tuple[str, ...] = ("dn-1",)) -> int:
    """Returns how many purges are submitted once *ms* have passed and these nodes were heard
    again."""
    pass_ms(one, ms, heard)
    return await purge_dropped(one.term, one.clock.wall_ms())


def pass_ms(one: Server, ms: int, heard: tuple[str, ...] = ("dn-1",)) -> None:
    one.clock.ahead_ms += ms
    for node in heard:
        sequence = one.term.nodes.entry(node).sequence + 1
        one.term.nodes.heartbeat(beat(node, sequence))


async def ended(one: Server) -> list[str]:
    """The outcomes of all purges, once none is left."""
    for procedure, _ in one.term.manager.living():
        await one.term.manager.wait(procedure, deadline_ms=10_000)
    listed = (await one.client.get("/v1/procedures", params={"kind": "purge_table"})).json()
    return [body["state"] for body in listed["procedures"]]


@pytest.mark.case("greptime 104")
async def test_given_a_dropped_table_when_its_time_is_over_then_it_is_gone_for_good() -> None:
    async with leader(nodes=1) as one:
        table = await dropped(one)
        by_id = f"/v1/tables/{table['id']}"
        early = await after(one, 7 * DAY_MS - 60_000)
        kept = await one.client.get(by_id)
        due = await after(one, 120_000)
        again = await purge_dropped(one.term, one.clock.wall_ms())

        assert (early, kept.status_code) == (0, 200)
        assert (due, again) == (1, 0)
        assert await ended(one) == ["succeeded"]
        gone = await one.client.get(by_id)
        assert (gone.status_code, gone.json()["code"]) == (404, "table-not-found")
        back = await one.client.post(f"{TABLES}/t/undrop", json={})
        assert (back.status_code, back.json()["code"]) == (404, "table-not-found")
        roots = [order.root for _, order in one.nodes.asked if isinstance(order, DropRegion)]
        assert roots == [f"/data/dn-1/regions/{table['id'] << 32}-1"]
        assert await purge_dropped(one.term, one.clock.wall_ms()) == 0


async def test_given_a_shorter_retention_when_set_then_it_holds_at_once() -> None:
    async with leader(nodes=1) as one:
        await dropped(one)
        (table,) = one.state.follower.catalog.all_dropped()
        assert table.dropped_at_ms is not None
        path = "/v1/settings/drop_retention_ms"
        assert (await one.client.put(path, json={"value": 59_999})).status_code == 422
        assert (await one.client.put(path, json={"value": 60_000})).status_code == 200

        pass_ms(one, 59_000)
        assert await purge_dropped(one.term, table.dropped_at_ms + 59_999) == 0
        assert await purge_dropped(one.term, table.dropped_at_ms + 60_000) == 1


async def test_given_a_node_that_is_away_when_the_time_is_over_then_its_table_waits_for_it() -> (
    None
):
    async with leader(nodes=1) as one:
        await dropped(one)

        assert await after(one, 8 * DAY_MS, heard=()) == 0
        assert await after(one, 1_000) == 1


async def test_given_a_node_that_answers_no_orders_when_the_time_is_over_then_its_table_waits() -> (
    None
):
    async with leader(nodes=1) as one:
        await dropped(one)
        pass_ms(one, 8 * DAY_MS)
        now_ms, entry = one.clock.mono_ms(), one.term.nodes.entry("dn-1")

        entry.has_not_answered(now_ms - 30_000, now_ms)
        assert await purge_dropped(one.term, one.clock.wall_ms()) == 0
        entry.has_answered()
        assert await purge_dropped(one.term, one.clock.wall_ms()) == 1


async def test_given_a_new_leader_when_it_has_not_waited_then_it_purges_nothing() -> None:
    async with leader(nodes=1) as one:
        await dropped(one)
        later = one.clock.wall_ms() + 8 * DAY_MS

        assert await purge_dropped(one.term, later) == 0
        quiet_ms = one.term.nodes.leases.quiet_until_ms - one.clock.mono_ms()
        assert await after(one, quiet_ms) == 0
        assert await purge_dropped(one.term, later) == 1


async def test_given_a_table_that_came_back_and_was_dropped_anew_then_its_time_begins_anew() -> (
    None
):
    async with leader(nodes=1) as one:
        await dropped(one)
        await after(one, 6 * DAY_MS)
        assert (
            await one.client.post(f"{TABLES}/t/undrop", json={}, headers=WAIT)
        ).status_code == 200
        assert (await one.client.delete(f"{TABLES}/t", headers=WAIT)).status_code == 204

        assert await after(one, 2 * DAY_MS) == 0
        assert await after(one, 6 * DAY_MS) == 1


class OneMinute(ShiftedClock):
    """Sleeps once without delay; the second sleep says so, and does not end."""

    def __init__(self, ahead_ms: int) -> None:
        self.ahead_ms = ahead_ms
        self.slept = 0
        self.tidied = asyncio.Event()

    async def sleep_ms(self, ms: int) -> None:
        self.slept += 1
        if self.slept > 1:
            self.tidied.set()
            await asyncio.Event().wait()


async def test_given_a_leader_that_tidies_when_a_table_is_due_then_it_is_purged() -> None:
    async with leader(nodes=1) as one:
        table = await dropped(one)
        await after(one, 60_000)  # its grace is over
        clock = OneMinute(one.clock.ahead_ms + 8 * DAY_MS)
        async with asyncio.TaskGroup() as tasks:
            tidying = tasks.create_task(housekeeping(one.term, clock))
            await clock.tidied.wait()
            tidying.cancel()

        assert await ended(one) == ["succeeded"]
        assert (await one.client.get(f"/v1/tables/{table['id']}")).status_code == 404
