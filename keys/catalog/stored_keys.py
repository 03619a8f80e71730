"""The keys that the store has for a catalog: what the log's entries must have come to."""

from collections.abc import Iterator
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.placing.placements import (
    DEFAULT_PLACEMENT_ID,
    PlacedTable,
    PlacedTableKey,
    PlacementKey,
)
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey, TablespaceKey
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
    for placement in catalog.placing.placements.values():
        yield PlacementKey(placement.name), placement
    for spaces in catalog.placing.tablespaces.values():
        for space in spaces.values():
            yield TablespaceKey(space.catalog, space.name), space
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
    placement_id, profile = info.placement_id, info.storage_profile
    if info.dropping is not None:
        return
    if placement_id is not None or profile is not None:
        use = PlacedTable(table_id=table_id, storage_profile=profile)
        yield PlacedTableKey(placement_id or DEFAULT_PLACEMENT_ID, table_id), use
    if info.tablespace_id is not None:
        yield GroupedTableKey(info.tablespace_id, table_id), GroupedTable(table_id=table_id)


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
