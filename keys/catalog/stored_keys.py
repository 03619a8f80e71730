"""The keys that the store has for a catalog: what the log's entries must have come to."""

from collections.abc import Iterator
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableNameKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.tables import (
    DatanodeTable,
    DatanodeTableKey,
    TableInfoKey,
    TableNameKey,
    TableNameRecord,
    TableRouteKey,
)
from keys.value import StoredModel

StoredKey = tuple[Key[Any], StoredModel]


def stored_keys(catalog: Catalog) -> Iterator[StoredKey]:
    """Every key of the families that the log tells (`Key.is_logged`), with its value.

    Independent of the function that derives the writes of an entry
    (keys/commit/entry_writes.py): the two are compared.
    """
    for info in (*catalog.catalogs.values(), *catalog.leaving_catalogs.values()):
        yield CatalogNameKey(info.name), info
    for schema in (*catalog.schemas.values(), *catalog.leaving.values()):
        yield SchemaNameKey(schema.catalog, schema.name), schema
    for table in catalog.tables.values():
        yield from _removed(table) if table.dropped_at_ms is not None else _living(table)


def _living(table: CatalogTable) -> Iterator[StoredKey]:
    info, route, table_id = table.info, table.route, table.info.table_id
    yield TableInfoKey(table_id), info
    yield TableRouteKey(table_id), route
    if info.dropping is None:
        name = TableNameKey(info.catalog, info.schema_name, info.name)
        yield name, TableNameRecord(table_id=table_id)
    for node, numbers in route.numbers_by_node().items():
        value = DatanodeTable(table_id=table_id, version=route.version, regions=numbers)
        yield DatanodeTableKey(node, table_id), value


def _removed(table: CatalogTable) -> Iterator[StoredKey]:
    info, by, at_ms = table.info, table.dropped_by, table.dropped_at_ms
    assert by is not None
    assert at_ms is not None
    table_id = info.table_id
    gone = RemovedTableInfo(info=info, dropped_at_ms=at_ms, dropped_by=by)
    left = RemovedTableRoute(route=table.route, dropped_at_ms=at_ms, dropped_by=by)
    yield RemovedTableInfoKey(table_id), gone
    yield RemovedTableRouteKey(table_id), left
    name = RemovedTableNameKey(info.catalog, info.schema_name, info.name, table_id)
    yield name, TableNameRecord(table_id=table_id)
