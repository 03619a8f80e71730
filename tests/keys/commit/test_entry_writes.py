"""The keys that entries of the log write are those that the catalog calls for, at each version."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.stored_keys import stored_keys
from keys.commit.change import change
from keys.commit.entry_writes import writes_of
from keys.commit.txn import Read, Snapshot, Txn
from keys.key import Key
from keys.model.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.families import FAMILIES
from keys.model.log import (
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    CatalogUpdate,
    Entry,
    PlacementCreated,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TablespaceCreated,
)
from keys.model.placing.placements import PlacementInfo, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import DatanodeTableKey, TableInfoKey, TableNameKey, TableRouteKey
from keys.value import StoredModel, decode
from tests.keys.catalog.logs import World, first_update, update
from tests.keys.commit.changes import absent
from tests.procedures.harness.tables import table_info, table_route

V = TypeVar("V", bound=StoredModel)
Stored = dict[Key[Any], StoredModel]
INFO, ROUTE = table_info(1024, "t", 2), table_route(1024, ("dn-1", "dn-2"))
CREATED = TableCreated(info=INFO, route=ROUTE)
KEYS = (TableInfoKey(1024), TableRouteKey(1024), TableNameKey("main", "public", "t"))


class Store:
    """The keys that the log tells, moved by the writes of its entries alone."""

    def __init__(self) -> None:
        self.keys: Stored = {}

    def get(self, key: Key[V], /) -> V | None:
        return self.keys.get(key)  # type: ignore[return-value]

    def take(self, entries: Iterable[Entry]) -> None:
        for key, value, _ in writes_of(entries, self):
            assert key.is_logged
            if value is None:
                self.keys.pop(key)
            else:
                self.keys[key] = value


def told(updates: Iterable[CatalogUpdate]) -> None:
    """Holds the keys against the catalog at every version."""
    store, catalog = Store(), Catalog()
    for one in updates:
        catalog = catalog.apply(one, one.version)
        store.take(one.entries)
        assert store.keys == dict(stored_keys(catalog)), one


@given(st.integers(0, 10_000))
@pytest.mark.slow
@pytest.mark.case("catalog 148")
def test_given_any_log_when_applied_then_the_keys_are_those_of_the_catalog_at_each_version(
    seed: int,
) -> None:
    world = World(seed)

    told([first_update(), *(update(version, world.entry()) for version in range(2, 42))])


@given(st.integers(0, 10_000), st.lists(st.integers(1, 5), min_size=1, max_size=12))
@pytest.mark.slow
def test_given_several_entries_in_a_version_when_applied_then_each_follows_the_one_before(
    seed: int, sizes: list[int]
) -> None:
    """One write a key, also of a table that is made and altered, or dropped, in one version."""
    world, store, catalog = World(seed), Store(), Catalog().apply(first_update(), 1)
    store.take(first_update().entries)
    for version, size in enumerate(sizes, start=2):
        entries = tuple(world.entry() for _ in range(size))
        catalog = catalog.apply(update(version, *entries), version)
        writes = writes_of(entries, store)
        assert len({key for key, _, _ in writes}) == len(writes)
        for key, value, _ in writes:
            if value is None:
                store.keys.pop(key, None)
            else:
                store.keys[key] = value

        assert store.keys == dict(stored_keys(catalog))


def test_given_a_catalog_that_comes_and_goes_when_applied_then_its_keys_do_too() -> None:
    tenant = CatalogInfo(catalog_id=2, name="x", created_at_ms=0)
    schema = SchemaInfo(schema_id=2, catalog="x", name="s", created_at_ms=0)
    leaving = {"dropping": "p"}
    entries: tuple[Entry, ...] = (
        CatalogCreated(info=tenant),
        SchemaCreated(info=schema),
        CatalogDropping(info=tenant.model_copy(update=leaving)),
        SchemaDropping(info=schema.model_copy(update=leaving)),
        SchemaDropped(catalog="x", name="s"),
        CatalogDropped(name="x"),
    )

    told([first_update(), *(update(number, one) for number, one in enumerate(entries, start=2))])


@pytest.mark.case("catalog 114")
def test_given_every_kind_of_entry_then_a_log_of_these_tests_has_it() -> None:
    union, _ = get_args(Entry)
    seen: set[type] = {CatalogDropped, CatalogDropping, SchemaDropping}
    for seed in range(20):
        world = World(seed)
        seen |= {type(world.entry()) for _ in range(80)} | {CatalogCreated}

    assert seen == set(get_args(union))


def test_given_a_change_then_it_compares_all_that_was_read_and_writes_keys_and_log() -> None:
    txn = change(absent(*KEYS), CREATED)

    assert txn.expect == {bytes(key): 0 for key in KEYS}
    assert txn.entries == (CREATED,)
    assert decoded(txn) == {
        key: value for key, value in stored_keys(made()) if key not in keys_before()
    }


def made() -> Catalog:
    return Catalog().apply(first_update(), 1).apply(update(2, CREATED), 2)


def keys_before() -> Stored:
    return dict(stored_keys(Catalog().apply(first_update(), 1)))


def decoded(txn: Txn) -> Stored:
    """The values that *txn* puts."""
    keys: dict[bytes, Key[Any]] = {bytes(key): key for key, _ in stored_keys(made())}
    return {
        keys[raw]: decode(keys[raw].value_type, value, key=raw.decode())
        for raw, value in txn.writes.items()
        if isinstance(value, bytes)
    }


@pytest.mark.parametrize("missing", KEYS, ids=lambda key: type(key).__name__)
def test_given_a_key_that_was_not_read_when_changed_then_it_is_a_programmers_error(
    missing: Key[Any],
) -> None:
    with pytest.raises(AssertionError, match="never read"):
        change(absent(*(key for key in KEYS if key != missing)), CREATED)


@pytest.mark.parametrize(
    "entry",
    [TableAltered(info=INFO), TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")],
    ids=["altered", "dropped"],
)
def test_given_a_table_that_is_not_there_when_changed_then_it_is_a_programmers_error(
    entry: Entry,
) -> None:
    with pytest.raises(AssertionError, match="does not exist"):
        change(absent(*KEYS), entry)


def test_given_a_read_of_more_when_a_part_is_taken_then_the_change_compares_that_part() -> None:
    reads: Mapping[bytes, Read] = {
        bytes(KEYS[0]): Read(INFO, 7),
        bytes(KEYS[1]): Read(ROUTE, 8),
    }
    altered = INFO.model_copy(update={"version": 2})

    txn = change(Snapshot(9, reads).only(KEYS[0]), TableAltered(info=altered))

    assert txn.expect == {bytes(KEYS[0]): 7}
    assert txn.writes.keys() == {bytes(KEYS[0])}


@pytest.mark.parametrize(
    "key",
    [
        TableInfoKey(1),
        TableRouteKey(1),
        TableNameKey("main", "public", "t"),
        DatanodeTableKey("dn-1", 1),
        CatalogNameKey("main"),
        SchemaNameKey("main", "public"),
    ],
    ids=lambda key: type(key).__name__,
)
def test_given_a_key_that_the_log_tells_when_written_by_hand_then_it_is_a_programmers_error(
    key: Key[Any],
) -> None:
    txn = Txn.on(absent(key))

    with pytest.raises(AssertionError, match="entry of the catalog log"):
        txn.delete(key)
    with pytest.raises(AssertionError, match="entry of the catalog log"):
        txn.put(key, INFO)


def test_given_all_families_then_those_that_the_log_tells_are_those_of_a_catalog() -> None:
    dropped = TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")
    profiles = (StorageProfile(name="fast", engine="lsm"),)
    placement = PlacementInfo(
        placement_id=1025, name="p", storage_profiles=profiles, created_at_ms=0
    )
    space = TablespaceInfo(tablespace_id=1025, catalog="main", name="s", created_at_ms=0)
    placed = {"table_id": 1025, "name": "u", "placement_id": 1025, "tablespace_id": 1025}
    placed_table = TableCreated(
        info=INFO.model_copy(update=placed), route=table_route(1025, ("dn-1",))
    )
    entries = (PlacementCreated(info=placement), TablespaceCreated(info=space), placed_table)
    catalogs = (made(), made().apply(update(3, dropped), 3), made().apply(update(3, *entries), 3))
    told = {type(key) for catalog in catalogs for key, _ in stored_keys(catalog)}

    assert told == {family.key for family in FAMILIES if family.key.is_logged}
