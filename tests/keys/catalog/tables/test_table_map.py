"""Heads, versions and stored forms of tables, whether they lie in a pack or not."""

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.table_map import TableMap
from keys.model.log import TableCreated
from keys.model.snapshot.snapshots import TableItem
from keys.value import decode_json
from tests.keys.catalog.logs import first_update, update
from tests.keys.catalog.snapshots import ref_of
from tests.procedures.harness.tables import table_info, table_route


def table(table_id: int, version: int) -> CatalogTable:
    info = table_info(table_id, f"t{table_id}", 1)
    return CatalogTable.created(info, table_route(table_id, ("dn-1",)), version, at_ms=1)


def packed(*table_ids: int) -> TableMap:
    """Tables of a snapshot; each was made by the version of its id."""
    catalog = Catalog().apply(first_update(), 1)
    for table_id in table_ids:
        made = table(table_id, table_id)
        entry = TableCreated(info=made.info, route=made.route)
        catalog = catalog.apply(update(catalog.version + 1, entry), 1)
    parts = list(parts_of(catalog))
    return catalog_of(ref_of(catalog, parts), parts).tables


def test_given_tables_in_packs_and_out_of_them_then_each_has_its_head_version_and_text() -> None:
    other = packed(2_000, 2_001)
    tables = packed(1_024, 1_025, 1_026).set(1_025, table(1_025, 9)).delete(1_026)

    tables = tables.taken(other, 2_001).set(3_000, table(3_000, 10))

    assert [head.table_id for head in tables.heads()] == [1_024, 2_001, 1_025, 3_000]
    assert [*tables.heads()] == [each.head for each in tables.values()]
    versions = {number: tables.version_of(number) for number in (*tables, 1_026)}
    assert versions == {1_024: 2, 1_025: 9, 2_001: 3, 3_000: 10, 1_026: None}
    text = tables.json_of(2_001)
    assert text is not None
    assert decode_json(TableItem, text, key="item").info == tables[2_001].info
    assert tables.json_of(1_025) is None
    shown = [
        item.info.table_id if isinstance(item, CatalogTable) else item["info"]["table_id"]
        for item in tables.raw_items()
    ]
    assert shown == [1_024, 2_001, 1_025, 3_000]
