"""A read of a view of many tables looks at what it shows: counted, not timed."""

import asyncio

import pytest

from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.table_map import TableMap
from metasrv.service.catalog.listing import ListRequest
from metasrv.service.catalog.reading import Freshness
from metasrv.service.sql.selecting import ViewSelection, select
from metasrv.service.state.state import ServerState
from metasrv.service.views.pages import LOOKED_AT_MAX, view_page
from metasrv.service.views.streams import BATCH_ROWS, ViewStreamRequest, stream
from metasrv.service.views.table_units import TABLES_OF_A_TURN
from metasrv_base.wire.language.views import CSV
from tests.metasrv.api.counted import with_tables
from tests.metasrv.api.rig import leader

MANY = 20_000
PAGE = 100


class CountedTables(TableMap):
    """The tables of a catalog; counts those that are looked at."""

    __slots__ = ("looked_at",)

    def __getitem__(self, number: int) -> CatalogTable:
        self.looked_at = getattr(self, "looked_at", 0) + 1
        return super().__getitem__(number)


def counted(state: ServerState) -> CountedTables:
    """Puts a map that counts into the catalog that is read."""
    catalog = state.follower.catalog
    tables = CountedTables()
    tables._packs, tables._changed = catalog.tables._packs, catalog.tables._changed
    tables._size, tables.looked_at = catalog.tables._size, 0
    object.__setattr__(catalog, "tables", tables)
    return tables


def of(view: str, token: str | None = None) -> ListRequest:
    return ListRequest(f"/v1/information-schema/{view}", PAGE, token, Freshness())


@pytest.mark.slow
async def test_given_many_tables_then_a_read_looks_at_what_it_shows() -> None:
    async with leader(given=with_tables(MANY)) as one:
        tables = counted(one.state)
        name = next(iter(one.state.follower.catalog.tables.values())).info.name

        first, _ = await view_page(one.state, "tables", of("tables"), (), None)
        assert len(first.rows) == PAGE
        assert tables.looked_at <= PAGE + TABLES_OF_A_TURN + 1

        tables.looked_at = 0
        where = f"table_schema = 'public' and table_name = '{name}'"
        found, _ = await view_page(one.state, "columns", of("columns"), (), where)
        assert len(found.rows) > 0
        assert tables.looked_at <= 2

        tables.looked_at = 0
        again, _ = await view_page(
            one.state, "tables", of("tables", first.next_page_token), (), None
        )
        assert again.rows[0] > first.rows[-1]
        assert tables.looked_at <= PAGE + 2 * TABLES_OF_A_TURN + 1

        tables.looked_at = 0
        none, _ = await view_page(one.state, "tables", of("tables"), (), "table_name <> table_name")
        assert (none.rows, none.next_page_token is None) == ((), False)
        assert tables.looked_at <= LOOKED_AT_MAX + TABLES_OF_A_TURN


@pytest.mark.slow
async def test_given_a_file_of_many_tables_then_others_run_and_its_pieces_are_bounded() -> None:
    async with leader(given=with_tables(MANY)) as one:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        request = ViewStreamRequest("tables", ("table_name",), None, None, CSV)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(other())
            pieces, _ = await stream(one.state, request, Freshness())
            lines = [piece.count(b"\n") async for piece in pieces]
            task.cancel()

    assert sum(lines) == MANY + 1
    assert max(lines) <= BATCH_ROWS + TABLES_OF_A_TURN
    assert turns >= MANY // TABLES_OF_A_TURN


@pytest.mark.parametrize("limit", [1, 40])
@pytest.mark.slow
async def test_given_a_limit_then_a_file_looks_no_further(limit: int) -> None:
    async with leader(given=with_tables(MANY)) as one:
        tables = counted(one.state)
        request = ViewStreamRequest("tables", (), None, limit, CSV)
        pieces, _ = await stream(one.state, request, Freshness())
        text = b"".join([piece async for piece in pieces])

    assert text.count(b"\n") == limit + 1
    assert tables.looked_at <= limit + TABLES_OF_A_TURN


@pytest.mark.slow
async def test_given_many_tables_when_ordered_then_the_first_are_answered() -> None:
    async with leader(given=with_tables(MANY)) as one:
        tables = one.state.follower.catalog.tables
        names = sorted((table.info.name for table in tables.values()), reverse=True)
        selection = ViewSelection("tables", ("table_name",), None, (("table_name", True),), 3_000)

        selected = await select(one.state, selection)

    assert [row[0] for row in selected.rows] == names[:3_000]
    assert selected.is_cut
