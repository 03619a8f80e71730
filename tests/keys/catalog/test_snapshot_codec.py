"""A snapshot holds all that a catalog has, and nothing else makes a catalog of it."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.ordered import CHUNK_MAX
from keys.catalog.snapshot_codec import catalog_of, items_of, parts_of
from keys.catalog.tables import part_filling
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.part_filling import PART_JSON_BYTES
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import (
    CatalogCreated,
    CatalogDropping,
    PlacementCreated,
    SchemaCreated,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TablespaceCreated,
)
from keys.model.placing.placements import default_placement
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.snapshot.snapshots import SnapshotPart
from keys.value import decode
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import World, check, first_update, update
from tests.keys.catalog.snapshots import decoded, plain, ref_of, restored
from tests.procedures.harness.tables import table_info, table_route

STORED = {
    "version",
    "revision",
    "at_ms",
    "catalogs",
    "schemas",
    "schema_revisions",
    "leaving_catalogs",
    "leaving",
    "tables",
    "placing",
}
"""Fields of a catalog that a snapshot or its reference holds."""
DERIVED = {"names", "ordered", "freed", "gone", "nodes", "led", "led_placed", "held"}
DERIVED |= {"sizes", "states", "shapes"}
"""Fields that follow from the tables."""


def full() -> Catalog:
    """A catalog in which no field is empty."""
    other = CatalogInfo(catalog_id=2, name="other", created_at_ms=0)
    leaving = SchemaInfo(schema_id=3, catalog="main", name="old", created_at_ms=0)
    infos = [table_info(1024, "a", 1), table_info(1025, "b", 1), table_info(1026, "c", 1, "old")]
    infos.append(table_info(1027, "d", 1))
    placement = default_placement(0).model_copy(update={"placement_id": 1025, "name": "p"})
    space = TablespaceInfo(tablespace_id=1025, catalog="main", name="s", created_at_ms=0)
    used = {"placement_id": 1025, "storage_profile": "default", "tablespace_id": 1025}
    infos[0] = infos[0].model_copy(update={"format": 2, **used})
    made = [TableCreated(info=i, route=table_route(i.table_id, ("dn-1",))) for i in infos]
    catalog = Catalog().apply(first_update(), 3)
    catalog = catalog.apply(update(2, CatalogCreated(info=other), SchemaCreated(info=leaving)), 5)
    placing = (PlacementCreated(info=placement), TablespaceCreated(info=space))
    catalog = catalog.apply(update(3, *placing, *made), 7)
    dropping = CatalogDropping(info=other.model_copy(update={"dropping": "p"}))
    schema = SchemaDropping(info=leaving.model_copy(update={"dropping": "p"}))
    gone = TableDropped(table_id=1025, dropped_at_ms=5, dropped_by="p")
    hidden = {"state": ElementState.WRITE_ONLY, "dropping": "p", "version": 2}
    freed = TableAltered(info=infos[3].model_copy(update=hidden))
    return catalog.apply(update(4, dropping, schema, gone, freed), 9)


def test_given_a_catalog_with_every_field_when_restored_then_each_is_as_it_was() -> None:
    catalog = full()
    empty = [each.name for each in fields(catalog) if not getattr(catalog, each.name)]

    assert empty == []
    assert plain(restored(catalog)) == plain(catalog)
    assert {each.name for each in fields(Catalog)} == STORED | DERIVED, "is it in a snapshot?"
    assert {each.name for each in fields(CatalogTable)} == {
        "info",
        "route",
        "catalog_version",
        "dropped_at_ms",
        "dropped_by",
        "columns_schema_version",
        "columns_catalog_version",
        "columns_at_ms",
        "earlier",
    }, "is it in TableItem, and in `CatalogBuilder`?"


@given(seed=st.integers(0, 1 << 32), before=st.integers(0, 60), after=st.integers(0, 20))
@settings(max_examples=30, deadline=None)
@pytest.mark.slow
@pytest.mark.case("catalog 26")
def test_given_any_log_when_a_snapshot_is_in_its_middle_then_it_leads_to_the_same(
    seed: int, before: int, after: int
) -> None:
    world, live = World(seed), Catalog().apply(first_update(), 7)
    for version in range(2, before + 2):
        live = live.apply(update(version, world.entry()), 7 * version)

    recovered = restored(live)
    assert plain(recovered) == plain(live)
    for version in range(live.version + 1, live.version + after + 1):
        new = update(version, world.entry())
        live, recovered = live.apply(new, 7 * version), recovered.apply(new, 7 * version)

    assert plain(recovered) == plain(live)
    check(recovered, world)


def test_given_many_tables_when_taken_apart_then_parts_are_full_and_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(part_filling, "PART_JSON_BYTES", 2_000)
    catalog = Catalog().apply(first_update(), 1)
    for number in range(3 * CHUNK_MAX):
        info = table_info(1024 + number, f"t{number:05}", 1)
        made = TableCreated(info=info, route=table_route(info.table_id, ("dn-1",)))
        catalog = catalog.apply(update(number + 2, made), number + 2)

    parts = list(parts_of(catalog))
    sizes = [len(SnapshotPart.unpack(raw)) for raw in parts]

    assert len(parts) > 100
    assert all(2_000 <= size < 4_500 for size in sizes[:-1])
    assert plain(restored(catalog)) == plain(catalog)
    assert len(list(restored(catalog).in_schema("main", "public"))) == 3 * CHUNK_MAX
    assert PART_JSON_BYTES < 1_500_000 // 4


def test_given_a_part_then_its_stored_form_is_that_of_its_model() -> None:
    catalog = full()
    (raw,) = parts_of(catalog)
    part = decode(SnapshotPart, raw, key="part")

    assert part.items == tuple(items_of(catalog))
    assert part.pack() == raw


def test_given_parts_of_another_snapshot_or_too_few_when_put_together_then_corrupt() -> None:
    catalog = full()
    parts = list(parts_of(catalog))
    ref, (part,) = ref_of(catalog, parts), decoded(parts)
    twice = part.model_copy(update={"items": (*part.items, part.items[-1])})
    tables = [item for item in part.items if item.what == "table"]
    unordered = part.model_copy(update={"items": (tables[0], tables[0])})

    for wrong in (
        [],
        [part, part],
        [part.model_copy(update={"part": 1})],
        [part.model_copy(update={"version": 3})],
        [twice],
        [unordered],
    ):
        with pytest.raises(Corrupt):
            catalog_of(ref, [each.pack() for each in wrong])


def test_given_an_empty_catalog_when_taken_apart_then_one_part_says_so() -> None:
    (raw,) = parts_of(replace(Catalog(), version=4))

    assert decode(SnapshotPart, raw, key="part") == SnapshotPart(version=4, part=0, items=())
