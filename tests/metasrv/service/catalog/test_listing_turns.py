"""A page of many tables leaves the event loop to others while they are decoded."""

import asyncio

from keys.model.catalogs import DEFAULT_CATALOG, DEFAULT_SCHEMA
from metasrv.service.catalog.listing import DECODED_IN_TURN, ListRequest, tables
from metasrv.service.catalog.reading import Freshness
from metasrv.service.requests.ddl_request import FullSchemaName
from metasrv.service.state.state import ServerState
from tests.metasrv.api.counted import with_tables
from tests.metasrv.api.rig import TABLES, leader

SLICES = 3
SCHEMA = FullSchemaName(DEFAULT_CATALOG, DEFAULT_SCHEMA)


async def test_given_a_page_of_many_tables_then_others_run_between_its_slices() -> None:
    async with leader(given=with_tables(SLICES * DECODED_IN_TURN)) as one:
        few = await turns_of_a_page(one.state, 1)
        many = await turns_of_a_page(one.state, SLICES * DECODED_IN_TURN)

    assert many - few == SLICES - 1


async def turns_of_a_page(state: ServerState, size: int) -> int:
    """Returns how often another task ran while a page was made."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    request = ListRequest(TABLES, size, None, Freshness())
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(other())
        body, _ = await tables(state, SCHEMA, request, "", False)
        task.cancel()
    assert len(body.tables) == size
    return turns
