"""A column added to a table with rows, on real datanodes: old rows, old writers, new ones."""

import pytest

from base.elements.states import ElementState
from base.errors import Unavailable
from base.wire.tables import ColumnBody
from metasrv.sdk.client import AsyncClient
from tests.sdk.catalog import URL, FakeCatalog
from tests.sdk.cluster import RealNodes
from tests.sdk.samples import small

pytestmark = pytest.mark.process


async def test_given_rows_when_a_column_is_added_then_they_read_null_and_both_versions_write(
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, small(regions=2))
    extra = ColumnBody(name="extra", type="int64", id=3, state=ElementState.PUBLIC)

    async with AsyncClient([URL], transport=catalog) as client:
        before = client.table("t")
        await before.insert([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}])
        assert catalog.table is not None
        catalog.change(columns=(*catalog.table.columns, extra), schema_version=2)
        three_nodes.tell(catalog)
        await before.upsert([{"id": 2, "note": "old"}, {"id": 4, "note": "old"}])
        after = client.table("t")
        await after.upsert([{"id": 3, "note": "c", "extra": 7}])
        rows = (await after.to_arrow()).sort_by("id").to_pylist()

    assert rows == [
        {"id": 1, "note": "a", "extra": None},
        {"id": 2, "note": "old", "extra": None},
        {"id": 3, "note": "c", "extra": 7},
        {"id": 4, "note": "old", "extra": None},
    ]


async def test_given_a_region_that_was_not_told_when_written_with_it_then_not_yet(
    three_nodes: RealNodes,
) -> None:
    catalog = FakeCatalog()
    three_nodes.create(catalog, small(regions=1))
    assert catalog.table is not None
    extra = ColumnBody(name="extra", type="int64", id=3, state=ElementState.PUBLIC)
    catalog.change(columns=(*catalog.table.columns, extra), schema_version=2)

    async with AsyncClient([URL], transport=catalog) as client:
        with pytest.raises(Unavailable):
            await client.table("t").insert([{"id": 1, "note": "a", "extra": 7}], deadline_ms=500)
        three_nodes.tell(catalog)
        await client.table("t").insert([{"id": 1, "note": "a", "extra": 7}])
        row = await client.table("t").get(1)

    assert row == {"id": 1, "note": "a", "extra": 7}
