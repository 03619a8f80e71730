"""Events of a version, applied to the catalog before it, make what direct reads show after it."""

from collections import Counter
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.catalog.catalog import Catalog
from keys.model.log import CatalogUpdate, Entry
from metasrv.service.events.catalog_events import events_of
from metasrv.service.events.event_filter import EventFilter, scopes_of
from metasrv_base.wire.events.events import CatalogEvent
from tests.keys.catalog.logs import first_update, update
from tests.metasrv.service.events.event_mirror import EventMirror, Reads
from tests.metasrv.service.events.histories import History

FILTERS = (
    EventFilter(),
    EventFilter(catalog="main"),
    EventFilter(schema="a"),
    EventFilter(catalog="main", schema="public", table="t1"),
    EventFilter(table="t2"),
    EventFilter(table_id=1026),
    EventFilter(schema="b", table_id=1027),
)


def told(
    seed: int, versions: int, sizes: tuple[int, ...] = (1,)
) -> tuple[Counter[str], list[CatalogUpdate]]:
    """The types of the events of a history, by which mirrors of all filters were moved."""
    history, catalog = History(seed), Catalog()
    mirrors = [EventMirror.of(catalog, wanted) for wanted in FILTERS]
    types: Counter[str] = Counter()
    reads = Reads()
    updates = [first_update()]
    for version in range(2, versions):
        size = sizes[version % len(sizes)]
        updates.append(update(version, *(history.entry() for _ in range(size))))
    for one in updates:
        events = tuple(events_of(catalog, one))
        assert len(events) >= len(one.entries)
        scoped = [(scopes_of(event), event) for event in events]
        for mirror in mirrors:
            mirror.take(mirror.wanted.select(scoped, catalog))
        catalog = catalog.apply(one, one.version)
        for mirror in mirrors:
            assert mirror.shown() == reads.shown(catalog, mirror.wanted)
        assert mirrors[0].catalogs.keys() == set(catalog.catalogs)
        assert mirrors[0].schemas.keys() == set(catalog.schemas)
        for mirror, named in ((mirrors[0], True), (mirrors[1], False)):
            straight = EventMirror.of(catalog)
            assert mirror.tablespaces == straight.tablespaces
            assert mirror.placements == (straight.placements if named else {})
        types.update(event.type for event in events)
    return types, updates


@given(st.integers(0, 10_000))
@settings(max_examples=12)
@pytest.mark.slow
@pytest.mark.case("catalog 68", "catalog 107")
def test_given_any_log_when_its_events_are_applied_then_reads_show_the_same_at_each_version(
    seed: int,
) -> None:
    told(seed, 60)


@given(st.integers(0, 10_000))
@settings(max_examples=12)
@pytest.mark.slow
def test_given_several_entries_in_a_version_when_applied_then_each_follows_the_one_before(
    seed: int,
) -> None:
    told(seed, 25, (1, 4, 2))


@pytest.mark.slow
def test_given_some_logs_then_they_have_every_kind_of_entry_and_of_event() -> None:
    types: Counter[str] = Counter()
    entries: set[type] = set()
    for seed in range(12):
        found, updates = told(seed, 40, (6,))
        types += found
        entries |= {type(entry) for one in updates for entry in one.entries}
    union, _ = get_args(CatalogEvent)
    kinds = {get_args(each.model_fields["type"].annotation)[0] for each in get_args(union)}

    assert kinds - types.keys() == set()
    assert {*get_args(get_args(Entry)[0])} - entries == set()
