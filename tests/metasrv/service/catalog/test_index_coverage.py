"""Progress of an index, region by region, as users see it."""

import pytest

from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.catalog.index_coverage import coverage_of
from procedures.elements.reorg import BuiltFiles, Taken, surveyed, with_made, with_taken
from tests.procedures.harness.tables import NODES, table_info, table_route

TABLE = 1024


@pytest.mark.case("catalog 94")
def test_given_a_reorg_half_way_then_each_region_says_where_it_is() -> None:
    route = table_route(TABLE, (*NODES, NODES[0]))
    regions = route.region_routes
    table = CatalogTable(table_info(TABLE, "t", len(regions)), route, catalog_version=1)
    rows = {region.region_id: 10 for region in regions[1:]}
    first, second, third = (made(region.number) for region in regions[1:4])
    reorg = surveyed(1, regions, rows)
    reorg = with_taken(with_made(reorg, [first, second], 1_000), [Taken(first), Taken(second, 3)])
    reorg = with_made(reorg, [third], 1_000)

    found = coverage_of("p-1", reorg, table)

    states = [one.state for one in found.regions]
    assert states == ["filled", "filled", "violated", "read", *["pending"] * (len(regions) - 4)]
    assert [one.region_id for one in found.regions] == [one.region_id for one in regions]
    assert (found.rows, found.entries, found.procedure_id) == (10, 10, "p-1")
    assert found.rows_total == 10 * len(rows)


def made(number: int) -> BuiltFiles:
    return BuiltFiles(
        region=number, epoch=1, attempt="attempts/a", files=(), rows=10, entries=10, bytes=1
    )
