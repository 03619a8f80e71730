"""A catalog whose changed tables are packed, at any time and at any depth, is as it was."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.snapshot_codec import catalog_of, parts_of
from keys.catalog.tables import part_filling, repacking
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.packed_tables import PackedTables
from keys.catalog.tables.repacking import Depth, Repacked, depth_of, repacked
from keys.catalog.tables.table_map import TableMap
from keys.model.log import TableAltered, TableCreated, TableDropped, TablePurged
from metasrv_base.concurrency.turns import at_once
from tests.keys.catalog.logs import World, check, first_update, update
from tests.keys.catalog.snapshots import plain, ref_of
from tests.procedures.harness.tables import table_info, table_route


def above(catalog: Catalog, before: Catalog, packed: Repacked) -> Catalog:
    tables = catalog.tables.rebased(before.tables, packed.layers, packed.packs)
    return replace(catalog, tables=tables)


def packed_of(catalog: Catalog, depth: Depth) -> Repacked:
    return at_once(repacked(catalog.tables, catalog.version, depth))


def unpacked(tables: TableMap) -> int:
    return sum(isinstance(source, CatalogTable) for source in tables.changes.values())


@given(seed=st.integers(0, 1 << 32), count=st.integers(10, 120), from_snapshot=st.booleans())
@settings(max_examples=40, deadline=None)
@pytest.mark.slow
def test_given_any_log_when_its_tables_are_packed_between_updates_then_each_version_is_the_same(
    seed: int, count: int, from_snapshot: bool
) -> None:
    world, rng, live = World(seed), Random(seed), Catalog().apply(first_update(), 7)
    kept, begun = live, live
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_filling, "PART_JSON_BYTES", rng.choice((100, 3_000, 100_000)))
        for version in range(2, count):
            new = update(version, world.entry())
            live, kept = live.apply(new, 7 * version), kept.apply(new, 7 * version)
            if from_snapshot and version == count // 2:
                parts = list(parts_of(kept))
                kept = begun = catalog_of(ref_of(kept, parts), parts)
            elif rng.random() < 0.2:
                packed = packed_of(begun, rng.choice([*Depth]))
                kept = begun = above(kept, begun, packed)
            elif rng.random() < 0.3:
                begun = kept
            assert plain(kept) == plain(live)

        parts = list(parts_of(above(kept, kept, packed_of(kept, Depth.NONE))))
        assert plain(catalog_of(ref_of(live, parts), parts)) == plain(live)
    check(kept, world)


def made(count: int) -> Catalog:
    catalog = Catalog().apply(first_update(), 1)
    entries = [
        TableCreated(info=table_info(1024 + n, f"t{n}", 2), route=table_route(1024 + n, ("dn-1",)))
        for n in range(count)
    ]
    return catalog.apply(update(2, *entries), 2)


def altered(catalog: Catalog, *numbers: int) -> Catalog:
    infos = [catalog.tables[1024 + n].info for n in numbers]
    entries = [
        TableAltered(info=info.model_copy(update={"version": info.version + 1})) for info in infos
    ]
    return catalog.apply(update(catalog.version + 1, *entries), catalog.version + 1)


def test_given_many_changes_when_packed_as_is_due_then_packs_stay_few_and_tables_are_held_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repacking, "LATER_PACKS_MAX", 4)
    monkeypatch.setattr(repacking, "BASE_MIN", 20)
    catalog, rng, depths = made(100), Random(3), set[Depth]()

    for _ in range(120):
        catalog = altered(catalog, *rng.sample(range(100), 3))
        depth = depth_of(catalog.tables)
        depths.add(depth)
        catalog = above(catalog, catalog, packed_of(catalog, depth))
        assert not catalog.tables.changes
        assert len(catalog.tables.packs) <= 5
        assert sum(map(len, catalog.tables.packs)) <= 300

    assert depths == {*Depth}
    caches = {id(pack.caches) for pack in catalog.tables.packs if isinstance(pack, PackedTables)}
    assert len(caches) == 1
    assert sum(table.info.version for table in catalog.tables.values()) == 100 * 1 + 120 * 3


def test_given_a_table_that_goes_while_it_is_packed_then_it_stays_gone() -> None:
    before = made(3)
    packed = packed_of(before, Depth.NONE)
    dropped = TableDropped(table_id=1025, dropped_at_ms=5, dropped_by="p")
    after = before.apply(update(3, dropped), 3).apply(update(4, TablePurged(table_id=1025)), 4)

    after = above(after, before, packed)

    assert sorted(after.tables) == [1024, 1026]
    assert sorted(above(after, after, packed_of(after, Depth.NONE)).tables) == [1024, 1026]


def test_given_tables_with_other_columns_before_when_packed_then_those_are_kept_and_found() -> None:
    catalog = made(2)
    info = catalog.tables[1024].info
    column = info.columns[1].model_copy(update={"name": "other"})
    entry = TableAltered(info=info.model_copy(update={"columns": (info.columns[0], column)}))
    catalog = catalog.apply(update(3, entry), 3)

    after = above(catalog, catalog, packed_of(catalog, Depth.ALL))

    assert unpacked(after.tables) == 0
    assert after.tables[1024].schema_versions == catalog.tables[1024].schema_versions
    assert len(after.tables[1024].schema_versions) == 2
    assert plain(after) == plain(catalog)


def test_given_many_tables_when_packed_then_it_takes_turns() -> None:
    catalog = made(1_000)

    for depth in (Depth.NONE, Depth.ALL):
        turns = repacked(catalog.tables, catalog.version, depth)
        assert sum(1 for _ in turns) > 30
        catalog = above(catalog, catalog, packed_of(catalog, depth))
        catalog = altered(catalog, *range(1_000))
