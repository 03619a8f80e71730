"""Commands are planned in turns, each on what those before it leave: a turn has some of them, or
some tables of a cascade. Operations are counted, not time."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.catalog.known import CatalogByKey
from keys.commit.entry_writes import ViewAfter
from keys.key import Key
from keys.model.catalogs import SchemaNameKey
from keys.model.log import CatalogDropped, Entry, SchemaDropped, TableAltered, TableCreated
from keys.model.placing.placements import PlacedTableKey
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceKey
from keys.model.tables import TableInfoKey, TableNameKey
from metasrv_base.concurrency.turns import TURN, at_once
from metasrv_base.errors import Conflict
from procedures.commands.free_commands import (
    FreeCatalogCommand,
    FreeSchemaCommand,
    FreeTableCommand,
)
from procedures.commands.in_order import (
    PLANNED_AT_ONCE,
    BatchCommand,
    DraftView,
    SweepCommand,
    planned,
)
from tests.keys.catalog.logs import World, first_update, update
from tests.procedures.harness.tables import table_info, table_route

TABLES = 1_200
BY = "b-1"


def with_tables() -> Catalog:
    entries: list[Entry] = [
        TableCreated(info=table_info(number, f"t{number}", 1), route=table_route(number, ("dn-1",)))
        for number in range(1024, 1024 + TABLES)
    ]
    return Catalog().apply(first_update(), 1).apply(update(2, *entries), 2)


def schema_drop(catalog: Catalog, *, cascade: bool = True) -> FreeSchemaCommand:
    number = catalog.schemas["main", "public"].schema_id
    return FreeSchemaCommand("main", "public", number, cascade, BY)


def catalog_drop(catalog: Catalog) -> FreeCatalogCommand:
    return FreeCatalogCommand("main", catalog.catalogs["main"].catalog_id, True, BY)


@pytest.mark.parametrize("drop", [schema_drop, catalog_drop])
def test_given_a_cascade_over_many_tables_when_planned_then_a_turn_has_some_of_them(
    drop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog, now, most, all_turns = with_tables(), *(Counter[str]() for _ in range(3))

    def count(what: str, place: Any, name: str, counts: Any) -> None:
        sound = getattr(place, name)

        def counted(*given: Any) -> Any:
            if counts(given):
                now[what] += 1
                all_turns[what] += 1
                most[what] = max(most[what], now[what])
            return sound(*given)

        monkeypatch.setattr(place, name, counted)

    count("listed", TableNameKey, "__post_init__", lambda _: True)
    count("read", CatalogByKey, "_value", lambda given: isinstance(given[1], TableInfoKey))
    count("applied", ViewAfter, "apply", lambda _: True)
    command: SweepCommand = drop(catalog)
    work, plans = planned([command], CatalogByKey(catalog)), None
    while plans is None:
        now.clear()
        try:
            next(work)
        except StopIteration as over:
            plans = over.value

    (entries,) = plans
    assert Counter(map(type, entries))[TableAltered] == TABLES
    assert type(entries[-1]) in (SchemaDropped, CatalogDropped)
    assert all_turns["listed"] >= TABLES
    assert most["listed"] <= TURN
    assert 0 < most["read"] <= 2 * PLANNED_AT_ONCE
    assert 0 < most["applied"] <= PLANNED_AT_ONCE


@given(seed=st.integers(0, 10_000), count=st.integers(0, 30), more=st.integers(0, 12))
def test_given_any_entries_over_a_catalog_then_a_draft_lists_what_the_next_catalog_lists(
    seed: int, count: int, more: int
) -> None:
    world = World(seed)
    before = Catalog().apply(first_update(), 1)
    before = before.apply(update(2, *(world.entry() for _ in range(count))), 2)
    entries = tuple(world.entry() for _ in range(more))
    after = before.apply(update(3, *entries), 3)
    draft = DraftView(CatalogByKey(before))
    draft.apply(entries)

    lists: list[tuple[type[Key[Any]], tuple[str | int, ...]]] = [
        (SchemaNameKey, ("main",)),
        (TableNameKey, ("main",)),
        (TableNameKey, ("main", "public")),
        (TablespaceKey, ("main",)),
        *((PlacedTableKey, (number,)) for number in after.placing.placed),
        *((GroupedTableKey, (number,)) for number in after.placing.grouped),
    ]
    for family, leading in lists:
        listed = at_once(draft.inside(family, *leading))
        assert listed == at_once(CatalogByKey(after).inside(family, *leading))
        assert list(listed) == sorted(listed, key=bytes)


def test_given_a_table_that_was_freed_before_then_a_cascade_leaves_it_out() -> None:
    catalog = with_tables()
    freed = FreeTableCommand(TableNameKey("main", "public", "t1024"), 1024, BY)

    first, rest = at_once(planned([freed, schema_drop(catalog)], CatalogByKey(catalog)))

    assert [type(entry) for entry in first] == [TableAltered]
    assert Counter(map(type, rest)) == {TableAltered: TABLES - 1, SchemaDropped: 1}


def test_given_a_command_that_is_refused_then_the_error_names_its_place() -> None:
    catalog = with_tables()
    freed = FreeTableCommand(TableNameKey("main", "public", "t1024"), 1024, BY)
    commands: list[BatchCommand] = [freed, schema_drop(catalog, cascade=False)]

    with pytest.raises(Conflict) as refused:
        at_once(planned(commands, CatalogByKey(catalog)))

    assert (refused.value.code, refused.value.facts["command"]) == ("not-empty", 1)
