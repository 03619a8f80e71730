"""The catalog is the fold of the log, and shares with the version before what did not change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.stored_keys import stored_keys
from keys.model.catalogs import SchemaInfo
from keys.model.log import (
    CatalogUpdate,
    Entry,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableUndropped,
)
from metasrv_base.concurrency.turns import Turns
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import World, check, first_update, update
from tests.keys.catalog.snapshots import plain
from tests.procedures.harness.tables import table_info, table_route


@given(st.integers(0, 10_000))
@pytest.mark.slow
@pytest.mark.case("catalog 148")
def test_given_any_log_when_folded_then_the_catalog_is_the_world_at_each_version(seed: int) -> None:
    world, catalog = World(seed), Catalog().apply(first_update(), 1)

    for version in range(2, 42):
        catalog = catalog.apply(update(version, world.entry()), version)
        check(catalog, world)

    assert (catalog.version, catalog.revision, catalog.at_ms) == (41, 41, 41)


@given(seed=st.integers(0, 10_000), entries=st.integers(1, 40), at_once=st.integers(1, 41))
def test_given_many_entries_when_applied_in_turns_then_as_at_once_and_the_version_before_stays(
    seed: int, entries: int, at_once: int
) -> None:
    world, catalog = World(seed), Catalog().apply(first_update(), 1)
    for version in range(2, 12):
        catalog = catalog.apply(update(version, world.entry()), version)
    text = update(12, *(world.entry() for _ in range(entries))).model_dump_json()
    many = CatalogUpdate.model_validate_json(text)
    before, keys = plain(catalog), dict(stored_keys(catalog))

    work, turns = catalog.applying(many, 12, entries_at_once=at_once), 0
    while (after := advanced(work)) is None:
        turns += 1
        assert plain(catalog) == before

    assert turns == entries // at_once
    assert plain(after) == plain(catalog.apply(CatalogUpdate.model_validate_json(text), 12))
    assert dict(stored_keys(catalog)) == keys
    check(after, world)


def advanced(work: Turns[Catalog]) -> Catalog | None:
    """The result of *work*, if the next turn is its last."""
    try:
        next(work)
    except StopIteration as over:
        result: Catalog = over.value
        return result
    return None


def test_given_one_change_then_everything_else_is_shared_with_the_version_before() -> None:
    catalog = Catalog().apply(first_update(), 1)
    for number in range(200):
        info = table_info(1024 + number, f"t{number}", 1)
        entry = TableCreated(info=info, route=table_route(1024 + number, ("dn-1",)))
        catalog = catalog.apply(update(number + 2, entry), number + 2)
    changed = table_info(1024, "t0", 1).model_copy(update={"version": 2})

    after = catalog.apply(update(202, TableAltered(info=changed)), 202)

    kept = [table for table in catalog.tables if after.tables[table] is catalog.tables[table]]
    assert len(kept) == 199
    assert after.schemas is catalog.schemas
    assert after.catalogs is catalog.catalogs
    assert catalog.tables[1024].info.version == 1


@pytest.mark.parametrize(
    "entry",
    [
        TableDropped(table_id=9, dropped_at_ms=1, dropped_by="p"),
        TablePurged(table_id=9),
        TablePurged(table_id=1024),
        TableAltered(info=table_info(9, "x", 1)),
        TableUndropped(info=table_info(1024, "t", 1), route=table_route(1024, ("dn-1",))),
        TableCreated(info=table_info(1024, "u", 1), route=table_route(1024, ("dn-1",))),
        TableCreated(info=table_info(1025, "t", 1), route=table_route(1025, ("dn-1",))),
        TableCreated(info=table_info(1025, "u", 1, "no"), route=table_route(1025, ("dn-1",))),
        SchemaDropped(catalog="main", name="public"),
        SchemaDropped(catalog="main", name="x"),
        SchemaCreated(info=SchemaInfo(schema_id=2, catalog="main", name="public", created_at_ms=1)),
        RouteChanged(table_id=1024, version=7, regions=()),
    ],
)
def test_given_an_entry_that_cannot_follow_when_applied_then_corrupt(entry: Entry) -> None:
    made = TableCreated(info=table_info(1024, "t", 1), route=table_route(1024, ("dn-1",)))
    catalog = Catalog().apply(first_update(), 1).apply(update(2, made), 2)

    with pytest.raises(Corrupt):
        catalog.apply(update(3, entry), 3)


@pytest.mark.parametrize("version", [1, 2, 4])
def test_given_a_gap_or_a_repeat_when_applied_then_corrupt(version: int) -> None:
    catalog = Catalog().apply(first_update(), 1).apply(update(2), 2)

    with pytest.raises(Corrupt):
        catalog.apply(update(version), 3)
