"""The choice of dropped tables to purge: the retention is over, the nodes can be told. Pure."""

from collections.abc import Iterator

import pytest

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.catalogs import CatalogInfo, CatalogLimits, CatalogSettings, SchemaInfo
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogUpdate,
    Entry,
    SchemaCreated,
    TableCreated,
    TableDropped,
)
from keys.model.tables import CopyRole, RegionCopy
from metasrv.leadership.purging import DropRetention, due
from metasrv_base.concurrency.turns import TURN, at_once
from tests.metasrv.nodes.samples import info, route

DAY_MS = 86_400_000


def catalog_of(dropped: dict[int, tuple[str, int | None]]) -> Catalog:
    """Table id -> the node of its region, and when it was dropped."""
    entries: list[Entry] = [
        CatalogCreated(info=CatalogInfo(catalog_id=1, name="main", created_at_ms=0)),
        SchemaCreated(info=SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=0)),
    ]
    for table_id, (node, at_ms) in dropped.items():
        placed = route(node, table_id)
        entries.append(TableCreated(info=info(table_id, f"t{table_id}"), route=placed))
        if at_ms is not None:
            entries.append(TableDropped(table_id=table_id, dropped_at_ms=at_ms, dropped_by="p"))
    return Catalog().apply(
        CatalogUpdate(version=1, at_ms=1, procedure=None, entries=tuple(entries)), 1
    )


def ids(catalog: Catalog, before_ms: int, away: tuple[str, ...] = (), limit: int = 9) -> list[int]:
    kept = DropRetention(now_ms=before_ms + DAY_MS, default_ms=DAY_MS)
    return [table.info.table_id for table in at_once(due(catalog, kept, away, limit))]


def test_given_dropped_tables_then_those_are_due_whose_time_is_over() -> None:
    catalog = catalog_of({1: ("dn-1", None), 2: ("dn-1", DAY_MS), 3: ("dn-1", DAY_MS + 1)})

    assert ids(catalog, DAY_MS - 1) == []
    assert ids(catalog, DAY_MS) == [2]
    assert ids(catalog, DAY_MS + 1) == [2, 3]


def test_given_more_than_may_be_purged_at_once_then_the_oldest_drops_go_first() -> None:
    catalog = catalog_of({1: ("dn-1", 30), 2: ("dn-1", 10), 3: ("dn-1", 20), 4: ("dn-1", 10)})

    assert ids(catalog, DAY_MS, limit=3) == [2, 4, 3]


def test_given_a_node_that_is_away_then_its_tables_wait_and_hold_up_no_others() -> None:
    catalog = catalog_of({1: ("dn-1", 10), 2: ("dn-2", 20)})

    assert ids(catalog, DAY_MS, ("dn-1",), limit=1) == [2]
    assert ids(catalog, DAY_MS) == [1, 2]


def test_given_a_node_with_a_copy_that_is_away_then_its_table_waits() -> None:
    copy = RegionCopy(node="dn-2", root="/dn-2/a", role=CopyRole.LEARNER)
    made = TableCreated(info=info(1, "t1"), route=route("dn-1", 1, copies=(copy,)))
    dropped = TableDropped(table_id=1, dropped_at_ms=10, dropped_by="p")
    update = CatalogUpdate(version=2, at_ms=2, procedure=None, entries=(made, dropped))
    catalog = catalog_of({}).apply(update, 2)

    assert ids(catalog, DAY_MS, ("dn-2",)) == []
    assert ids(catalog, DAY_MS, ("dn-3",)) == [1]


def test_given_many_dropped_tables_then_each_turn_looks_at_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog = catalog_of({number: ("dn-1", number) for number in range(1, 3 * TURN)})
    looks, everything = [0], catalog.all_dropped

    def counted(_: Catalog) -> Iterator[CatalogTable]:
        for table in everything():
            looks[-1] += 1
            yield table

    monkeypatch.setattr(Catalog, "all_dropped", counted)
    work = due(catalog, DropRetention(2 * DAY_MS, DAY_MS), (), 4)
    looks += (0 for _ in work)

    assert max(looks) <= TURN
    assert sum(looks) == 3 * TURN - 1


@pytest.mark.parametrize(("own_ms", "expected"), [(None, [2]), (DAY_MS // 2, [2, 3]), (5, [2, 3])])
def test_given_a_retention_of_the_tenant_then_it_holds_for_its_tables(
    own_ms: int | None, expected: list[int]
) -> None:
    catalog = catalog_of({2: ("dn-1", 10), 3: ("dn-1", DAY_MS)})
    info = catalog.catalogs["main"]
    tenant = info.as_tenant(CatalogSettings(drop_retention_ms=own_ms), CatalogLimits())
    entry = CatalogAltered(info=tenant)
    update = CatalogUpdate(version=2, at_ms=2, procedure=None, entries=(entry,))

    assert ids(catalog.apply(update, 2), DAY_MS) == ([2, 3] if own_ms is None else expected)
    assert ids(catalog.apply(update, 2), DAY_MS // 2) == expected
