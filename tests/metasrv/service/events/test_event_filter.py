"""Filters of events: names with dots, ids, and what a watcher of each is told."""

import pytest

from keys.catalog.catalog import Catalog
from keys.model.log import (
    CatalogUpdate,
    Entry,
    SchemaDropped,
    SchemaDropping,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
)
from metasrv.service.events.catalog_events import events_of
from metasrv.service.events.event_filter import EventFilter, scopes_of
from metasrv_base.errors import Refused
from metasrv_base.wire.events.events import CatalogEvent
from tests.keys.catalog.logs import first_update, schema_created, update
from tests.procedures.harness.tables import table_info, table_route


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, EventFilter()),
        ({"catalog": "main"}, EventFilter(catalog="main")),
        ({"schema": "s"}, EventFilter(schema="s")),
        ({"schema": "c.s"}, EventFilter("c", "s")),
        ({"catalog": "c", "schema": "c.s"}, EventFilter("c", "s")),
        ({"table": "t"}, EventFilter(table="t")),
        ({"table": "s.t"}, EventFilter(schema="s", table="t")),
        ({"table": "c.s.t", "table_id": 7}, EventFilter("c", "s", "t", 7)),
        ({"schema": "s", "table": "t"}, EventFilter(schema="s", table="t")),
    ],
)
def test_given_names_with_dots_then_they_are_conditions(
    given: dict[str, str], wanted: EventFilter
) -> None:
    assert EventFilter.of(**given) == wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "given",
    [
        {"catalog": "a.b"},
        {"catalog": ""},
        {"schema": "a.b.c"},
        {"schema": "a."},
        {"table": "a.b.c.d"},
        {"catalog": "x", "schema": "y.s"},
        {"schema": "x", "table": "y.t"},
    ],
)
def test_given_names_that_make_no_sense_or_contradict_then_refused(given: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        EventFilter.of(**given)  # type: ignore[arg-type]

    assert refused.value.code == "invalid-request"


def selected(wanted: EventFilter, before: Catalog, one: CatalogUpdate) -> list[CatalogEvent]:
    events = ((scopes_of(event), event) for event in events_of(before, one))
    return list(wanted.select(events, before))


def types_of(wanted: EventFilter) -> list[tuple[int, str]]:
    """Version and type of what a watcher is told: a table t is made, goes to another schema, is
    dropped there; one of its name is made; the first is purged; the schema of the second goes."""
    first, second = table_info(1024, "t", 1), table_info(1025, "t", 1)
    log = [
        first_update(),
        update(2, schema_created("other")),
        update(3, TableCreated(info=first, route=table_route(1024, ("dn-1",)))),
        update(4, TableRenamed(info=first.model_copy(update={"schema_name": "other"}))),
        update(5, TableCreated(info=second, route=table_route(1025, ("dn-1",)))),
        update(6, TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")),
        update(7, TablePurged(table_id=1024)),
    ]
    catalog, told = Catalog(), list[tuple[int, str]]()
    public = (info for entry in log[0].entries for info in [getattr(entry, "info", None)])
    (schema,) = (info for info in public if info is not None and info.name == "public")
    gone = schema.model_copy(update={"dropping": "p"})
    for one in [*log, update(8, SchemaDropping(info=gone))]:
        told += ((one.version, event.type) for event in selected(wanted, catalog, one))
        catalog = catalog.apply(one, one.version)
    return told


def test_given_a_table_that_is_renamed_out_of_a_filter_then_the_rename_is_the_last_of_it() -> None:
    assert types_of(EventFilter(table="t", schema="public")) == [
        (1, "catalog.created"),
        (1, "schema.created"),
        (3, "table.created"),
        (4, "table.renamed"),
        (5, "table.created"),
        (8, "schema.dropping"),
    ]


def test_given_a_table_that_is_renamed_into_a_filter_then_the_rename_is_the_first_of_it() -> None:
    assert types_of(EventFilter(schema="other"))[1:] == [
        (2, "schema.created"),
        (4, "table.renamed"),
        (6, "table.dropped"),
        (7, "table.purged"),
    ]


def test_given_an_id_then_another_table_of_its_name_is_not_told() -> None:
    assert types_of(EventFilter(table_id=1024)) == [
        (3, "table.created"),
        (4, "table.renamed"),
        (6, "table.dropped"),
        (7, "table.purged"),
    ]
    assert types_of(EventFilter(table_id=1025)) == [(5, "table.created"), (8, "schema.dropping")]


@pytest.mark.parametrize(
    ("place", "schema", "is_told"),
    [("other", "other", True), ("other", "public", False), (None, "public", False)],
)
def test_given_a_table_that_moves_when_a_schema_goes_in_the_same_version_then_its_place_counts(
    place: str | None, schema: str, is_told: bool
) -> None:
    info = table_info(1024, "t", 1)
    made = TableCreated(info=info, route=table_route(1024, ("dn-1",)))
    first = first_update()
    before = Catalog().apply(first, 1).apply(update(2, schema_created("other"), made), 2)
    moves: Entry = TableDropped(table_id=1024, dropped_at_ms=1, dropped_by="p")
    if place is not None:
        moves = TableRenamed(info=info.model_copy(update={"schema_name": place}))

    events = selected(
        EventFilter(table_id=1024),
        before,
        update(3, moves, SchemaDropped(catalog="main", name=schema)),
    )

    assert ("schema.dropped" in [event.type for event in events]) is is_told


def test_given_a_table_that_is_made_when_its_schema_goes_in_the_same_version_then_it_is_told() -> (
    None
):
    before = Catalog().apply(first_update(), 1)
    made = TableCreated(info=table_info(1024, "t", 1), route=table_route(1024, ("dn-1",)))
    gone = schema_created("public").info.model_copy(update={"dropping": "p"})

    events = selected(
        EventFilter(table_id=1024), before, update(2, made, SchemaDropping(info=gone))
    )

    assert [event.type for event in events] == ["table.created", "schema.dropping"]
