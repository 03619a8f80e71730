"""A table that is being made or dropped: nobody finds it, and no reader of the feed has it."""

from typing import Any

import pytest

from tests.metasrv.api.held_up import create_held_up, end_of
from tests.metasrv.api.rig import TABLES, Server, leader
from tests.metasrv.holders.reader import whole

PATH = f"{TABLES}/t"


async def seen(one: Server) -> tuple[int, list[Any], list[str]]:
    """The status of the table itself, the list of all, and what frontends know."""
    status = (await one.client.get(PATH)).status_code
    listed = (await one.client.get(TABLES)).json()["tables"]
    known = whole(one.state.follower).tables.values()
    return status, listed, [table.name for table in known]


@pytest.mark.case("online 61")
async def test_given_a_table_that_is_not_public_when_looked_for_then_nobody_has_it() -> None:
    async with leader() as one:
        creating = await create_held_up(one)
        half_made = await seen(one)
        one.nodes.gate.set()
        await end_of(one, creating)
        status, listed, known = await seen(one)

        one.nodes.gate.clear()
        one.nodes.reached.clear()
        dropping = (await one.client.delete(PATH)).headers["location"]
        await one.nodes.reached.wait()
        half_gone = await seen(one)
        one.nodes.gate.set()
        await end_of(one, dropping)

        nobody: tuple[int, list[Any], list[str]] = (404, [], [])
        assert half_made == half_gone == nobody
        assert (status, [table["name"] for table in listed], known) == (200, ["t"], ["t"])
        assert await seen(one) == nobody
