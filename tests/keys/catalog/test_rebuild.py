"""A rebuilt catalog is the one that was live at its version, whatever it was rebuilt from."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.rebuild import _OF_TABLES, Rebuild
from keys.commit.staged_parts import WholeItem
from keys.model.log import CatalogUpdate, Entry, TableAltered, TableCreated, TableDropped
from keys.model.tables import TableInfo
from keys.store.kv import KeyValue
from keys.value import NewerFormat, StoredPart, decode
from metasrv_base.concurrency.turns import at_once
from metasrv_base.errors import Corrupt
from tests.keys.catalog.logs import first_update, update
from tests.keys.catalog.rebuilding import must_be_equal, random_log, rebuilt, stored
from tests.procedures.harness.tables import table_info, table_route

VERSIONS = 60


@given(st.integers(0, 10_000), st.tuples(*(st.integers(0, VERSIONS) for _ in range(3))))
@pytest.mark.slow
def test_given_any_log_when_rebuilt_then_it_is_the_catalog_that_was_live(
    seed: int, drawn: tuple[int, int, int]
) -> None:
    log, catalogs = random_log(seed, VERSIONS)
    base, to, later = sorted(drawn)

    found = rebuilt(log, catalogs[base], catalogs[later], to)

    must_be_equal(found, catalogs[to])
    if to < VERSIONS:  # and it goes on as any other does
        following = [catalogs[to + 1], found.apply(_update(log, to + 1), to + 8)]
        must_be_equal(following[1], following[0])


def _update(log: list[KeyValue], version: int) -> CatalogUpdate:
    return decode(CatalogUpdate, log[version - 1].value, key="k")


def test_given_tables_that_stayed_as_they_were_then_they_are_shared_and_not_decoded() -> None:
    log, later = [stored(first_update())], Catalog().apply(first_update(), 8)
    for number in range(50):
        info = table_info(1024 + number, f"t{number}", 1)
        made = update(number + 2, TableCreated(info=info, route=table_route(1024 + number, ("a",))))
        log.append(stored(made))
        later = later.apply(made, number + 9)
    changed = update(52, TableAltered(info=table_info(1024, "t0", 1)))
    later = later.apply(changed, 59)

    fold = Rebuild(Catalog(), later, 51)
    fold.take(map(WholeItem, log))
    found = at_once(fold.finished())

    own = [
        table_id
        for table_id in found.tables
        if found.tables[table_id] is not later.tables[table_id]
    ]
    assert own == [1024]
    assert 0 < fold.held_bytes < 2_000


@pytest.mark.parametrize(
    "wrong",
    [
        update(3, TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")),
        update(2, TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")),
        update(2, TableAltered(info=table_info(1024, "t", 1))),
    ],
)
def test_given_a_log_that_cannot_be_then_corrupt(wrong: CatalogUpdate) -> None:
    fold = Rebuild(Catalog(), Catalog(version=9), 2)

    with pytest.raises(Corrupt):
        fold.take(map(WholeItem, [stored(first_update()), stored(wrong)]))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (b"", Corrupt),
        (b"[]", Corrupt),
        (b"{}", Corrupt),
        (b'{"format":"1"}', Corrupt),
        (b'{"format":99}', NewerFormat),
        (
            b'{"format":2,"version":1,"at_ms":1,"entries":[{"op":"table.created","info":{}}]}',
            Corrupt,
        ),
        (
            b'{"format":2,"version":1,"at_ms":1,"entries":[{"op":"table.new","table_id":1}]}',
            Corrupt,
        ),
        (b'{"format":2,"version":1,"at_ms":1,"entries":[{"op":"comet.created"}]}', Corrupt),
        (b'{"format":2,"version":1,"at_ms":1,"entries":[7]}', Corrupt),
        (b'{"format":2,"version":1}', Corrupt),
    ],
)
def test_given_a_value_that_is_no_update_then_it_is_told(
    value: bytes, error: type[Exception]
) -> None:
    fold = Rebuild(Catalog(), Catalog(version=9), 1)
    item = stored(first_update())._replace(value=value)

    with pytest.raises(error):
        fold.take([WholeItem(item)])


@pytest.mark.parametrize("entry", get_args(get_args(Entry)[0]), ids=lambda entry: entry.__name__)
def test_given_a_kind_of_entry_then_it_is_of_tables_or_applied_as_ever(
    entry: type[StoredPart],
) -> None:
    """An entry that names no table, as one of a tablespace, is left to `Catalog.apply`."""
    named = {name: field.annotation for name, field in entry.model_fields.items()}
    is_of_tables = TableInfo in named.values() or "table_id" in named

    assert str(entry.model_fields["op"].default).startswith(_OF_TABLES) == is_of_tables
