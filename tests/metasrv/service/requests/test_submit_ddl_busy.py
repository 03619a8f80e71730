"""Tables that a living procedure works on: heartbeats leave their regions alone."""

from metasrv.leadership.leadership import _Busy
from tests.metasrv.api.rig import TABLES, leader, spec

FIRST_ID = 1024


async def test_given_a_create_under_way_when_asked_then_its_table_is_busy_until_it_is_over() -> (
    None
):
    async with leader() as server:
        busy = _Busy(server.term.ready, server.term.manager)
        server.nodes.gate.clear()
        begun = (await server.client.post(TABLES, json=spec())).json()

        assert [busy(FIRST_ID), busy(FIRST_ID + 1)] == [True, False]

        server.nodes.gate.set()
        await server.term.manager.wait(begun["id"], deadline_ms=10_000)

        assert not busy(FIRST_ID)


async def test_given_records_that_are_not_read_when_asked_then_any_table_is_busy() -> None:
    async with leader() as server:
        server.term.ready.clear()

        assert _Busy(server.term.ready, server.term.manager)(FIRST_ID)
