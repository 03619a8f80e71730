"""Tables of a catalog in the order of their names, as units of views. Pure.

What a filter names is looked up, whatever else there is; a page decodes what it shows.
"""

from collections.abc import Generator, Iterable, Iterator
from heapq import merge
from typing import Any, TypeAlias, TypeVar

from keys.catalog.catalog import Catalog, SchemaName
from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.named import is_region_id
from metasrv.service.views.scope import ViewScope
from metasrv.service.views.view import Position, Units
from metasrv_base.concurrency.turns import slices
from metasrv_base.ids import RegionId, table_of

T = TypeVar("T", bound=Any)
Sorted: TypeAlias = Generator[Units, None, Iterator[T]]

TABLES_OF_A_TURN = 32
"""Tables that may be decoded between two yields of the event loop, some 100 us each."""
SORTED_AT_ONCE = 4_096  # names or ids, some ms


def living_tables(catalog: Catalog, scope: ViewScope, low: Position | None) -> Iterator[Units]:
    """Yields the tables that are not dropped, by catalog, schema and name."""
    ids = _table_ids(scope)
    if ids is not None:
        yield from _of_ids(catalog, ids, low)
        return
    first = (str(low[0]), str(low[1])) if low else ("", "")
    for schema in (yield from in_order(_schemas(catalog, scope))):
        if schema < first:
            continue
        start = str(low[2]) if low and schema == first else ""
        tables = _named_in(catalog, schema, scope.texts("table_name"), start)
        for some in slices(tables, TABLES_OF_A_TURN):
            yield [(_position(table), table) for table in some]
        yield ()


def dropped_tables(catalog: Catalog, scope: ViewScope, low: Position | None) -> Iterator[Units]:
    """Yields the dropped tables, by catalog and schema, then in the order in which they were made:
    several may have had one name."""
    ids, names = _table_ids(scope), scope.texts("table_name")
    first = (str(low[0]), str(low[1])) if low else ("", "")
    for schema in (yield from in_order(_within(scope, catalog.gone))):
        if schema < first:
            continue
        least = int(low[2]) if low and schema == first else 0
        selected = (
            table_id
            for table_id, name in catalog.gone[schema].items()
            if table_id >= least and (ids is None or table_id in ids)
            if names is None or name in names
        )
        for some in slices((yield from in_order(selected)), TABLES_OF_A_TURN):
            yield [((*schema, table_id), catalog.tables[table_id]) for table_id in some]


def in_order(items: Iterable[T]) -> "Sorted[T]":
    """Sorts in runs that are short; others may go first between them."""
    runs: list[list[T]] = []
    for some in slices(items, SORTED_AT_ONCE):
        runs.append(sorted(some))
        yield ()
    return merge(*runs)


def _within(scope: ViewScope, schemas: Iterable[SchemaName]) -> Iterator[SchemaName]:
    catalogs, names = scope.texts("table_catalog"), scope.texts("table_schema")
    return (
        schema
        for schema in schemas
        if (catalogs is None or schema[0] in catalogs) and (names is None or schema[1] in names)
    )


def _schemas(catalog: Catalog, scope: ViewScope) -> Iterator[SchemaName]:
    """Schemas that readers see. Of many only those that are named are looked at."""
    names = scope.texts("table_schema")
    if names is None:
        candidates: Iterable[SchemaName] = catalog.schemas
    else:
        candidates = ((holder, name) for holder in catalog.catalogs for name in names)
    return (schema for schema in _within(scope, candidates) if catalog.is_visible(*schema))


def _named_in(
    catalog: Catalog, schema: SchemaName, names: frozenset[str] | None, start: str
) -> Iterator[CatalogTable]:
    if names is None:
        return catalog.in_schema(*schema, start)
    tables = (catalog.find(*schema, name) for name in sorted(names) if name >= start)
    return (table for table in tables if table is not None)


def _of_ids(catalog: Catalog, ids: frozenset[int], low: Position | None) -> Iterator[Units]:
    tables = (catalog.tables.get(table_id) for table_id in ids)
    living = (t for t in tables if t is not None and t.dropped_at_ms is None and catalog.shows(t))
    for table in sorted(living, key=_position):
        if low is None or _position(table) >= low:
            yield [(_position(table), table)]


def _table_ids(scope: ViewScope) -> frozenset[int] | None:
    """Ids that the filter names, or those of the regions that it names; None: any."""
    regions = scope.texts("region_id")
    if regions is not None:
        return frozenset(table_of(RegionId(int(id))) for id in regions if is_region_id(id))
    return scope.numbers("table_id")


def _position(table: CatalogTable) -> tuple[str, str, str]:
    return table.info.catalog, table.info.schema_name, table.info.name
