"""The history of a table's columns: kept by the catalog and its log, bounded, and shared."""

from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.schema_versions import SCHEMA_VERSIONS_MAX
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.log import (
    Entry,
    RouteChanged,
    TableAltered,
    TableCreated,
    TableDropped,
    TableRenamed,
    TableUndropped,
)
from keys.model.tables import Column, Index, TableInfo
from metasrv_base.elements.states import ElementState
from tests.keys.catalog.logs import first_update, update
from tests.keys.catalog.rebuilding import must_be_equal, rebuilt, stored
from tests.procedures.harness.tables import table_info, table_route

INFO, ROUTE = table_info(1024, "t", 1), table_route(1024, ("dn-1",))


def column(number: int, **more: Any) -> Column:
    return Column(id=number, name=f"c{number}", type="int64", nullable=True, **more)


def with_columns(info: TableInfo, *added: Column, schema_version: int) -> TableInfo:
    update = {"columns": (*info.columns, *added), "schema_version": schema_version}
    return info.model_copy(update=update)


def folded(*entries: Entry) -> Catalog:
    """Also rebuilt, which must come to the same."""
    updates = [first_update(), update(2, TableCreated(info=INFO, route=ROUTE))]
    updates += [update(version, entry) for version, entry in enumerate(entries, start=3)]
    catalog = Catalog()
    for each in updates:
        catalog = catalog.apply(each, each.version + 7)
    later = catalog.apply(update(len(updates) + 1, TableAltered(info=INFO)), 99)
    log = [stored(each) for each in updates]
    must_be_equal(rebuilt(log, Catalog(), later, len(updates)), catalog)
    return catalog


def told(table: CatalogTable) -> list[tuple[int, int, int, list[int]]]:
    return [
        (each.schema_version, each.catalog_version, each.at_ms, [one.id for one in each.columns])
        for each in table.schema_versions
    ]


def test_given_columns_that_come_and_go_then_each_set_is_told_with_its_version_and_time() -> None:
    coming = with_columns(INFO, column(3, state=ElementState.DELETE_ONLY), schema_version=2)
    public = with_columns(INFO, column(3), schema_version=3)
    index = Index(id=1, name="i", columns=(3,), unique=False)
    indexed = public.model_copy(update={"schema_version": 4, "indexes": (index,)})
    dropped = INFO.model_copy(update={"schema_version": 5})

    catalog = folded(*(TableAltered(info=info) for info in (coming, public, indexed, dropped)))

    assert told(catalog.tables[1024]) == [
        (1, 2, 2, [1, 2]),
        (3, 4, 4, [1, 2, 3]),
        (5, 6, 6, [1, 2]),
    ]


def test_given_other_changes_then_the_history_stays_and_goes_on_after_an_undrop() -> None:
    renamed = INFO.model_copy(update={"name": "u"})
    moved = ROUTE.with_regions((ROUTE.region_routes[0].model_copy(update={"leader": "dn-2"}),))
    column_renamed = renamed.model_copy(
        update={"columns": (INFO.columns[0], INFO.columns[1].model_copy(update={"name": "n"}))}
    )

    catalog = folded(
        TableRenamed(info=renamed),
        RouteChanged(table_id=1024, version=2, regions=moved.region_routes),
        TableDropped(table_id=1024, dropped_at_ms=5, dropped_by="p"),
        TableUndropped(info=renamed, route=moved),
        TableAltered(info=column_renamed),
    )

    assert [each[1] for each in told(catalog.tables[1024])] == [2, 7]
    assert catalog.tables[1024].earlier[0].columns[1].name == "note"


def test_given_many_sets_of_columns_then_the_newest_are_kept_and_share_what_stayed() -> None:
    infos = [
        with_columns(INFO, column(3 + number), schema_version=2 + number) for number in range(150)
    ]

    table = folded(*(TableAltered(info=info) for info in infos)).tables[1024]

    assert len(table.schema_versions) == SCHEMA_VERSIONS_MAX
    assert table.schema_versions[-1].columns[-1].id == 152
    assert len({id(each.columns[0]) for each in table.earlier}) == 1
