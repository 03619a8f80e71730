"""Snapshots from an applied catalog instead of from the store.

The leader applies each commit of its term before it answers it, so its catalog is no older than a
linearizable read. A catalog holds values, and of schemas the revisions of their keys; of tables it
proves only that keys do not exist. A transaction compares what it was told here as it compares what
it read: a revision that is wrong is refused, and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar, cast

from keys.catalog.catalog import Catalog
from keys.catalog.ordered import Names
from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.txn import UNKNOWN_REVISION, Read, Snapshot
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.placing.placements import PlacedTable, PlacedTableKey, PlacementKey
from keys.model.placing.tablespaces import GroupedTable, GroupedTableKey, TablespaceKey
from keys.model.removed import (
    RemovedTableInfo,
    RemovedTableInfoKey,
    RemovedTableRoute,
    RemovedTableRouteKey,
)
from keys.model.tables import TableInfoKey, TableNameKey, TableNameRecord, TableRouteKey
from keys.value import StoredModel
from metasrv_base.concurrency.turns import Turns, slices, sorting

ABSENT = Read(None, 0)
V = TypeVar("V", bound=StoredModel)
K = TypeVar("K", bound=Key[Any])
D = TypeVar("D", RemovedTableInfo, RemovedTableRoute)


def known(catalog: Catalog, *keys: Key[Any]) -> Snapshot | None:
    """*keys* at the revision of *catalog*. None: the catalog does not tell one of them."""
    reads: dict[bytes, Read] = {}
    for key in keys:
        read = _read(catalog, key)
        if read is None:
            return None
        reads[bytes(key)] = read
    return Snapshot(catalog.revision, reads)


def _read(catalog: Catalog, key: Key[Any]) -> Read | None:
    match key:
        case SchemaNameKey():
            name = (key.catalog, key.schema)
            revision = catalog.schema_revisions.get(name)
            if revision is None or revision == UNKNOWN_REVISION:
                return None
            return Read(catalog.schemas[name], revision)
        case TableNameKey():
            names = catalog.names.get((key.catalog, key.schema))
            return ABSENT if names is None or key.table not in names else None
        case TableInfoKey() | TableRouteKey() | RemovedTableInfoKey():
            return None if key.table_id in catalog.tables else ABSENT
        case _:
            return None


@dataclass(frozen=True, slots=True)
class CatalogByKey:
    """Tables, and what they stand in; of dropped ones no more than what each was."""

    catalog: Catalog

    def get(self, key: Key[V], /) -> V | None:
        """Raises KeyError for a key of another family."""
        return cast("V | None", self._value(key))

    def _value(self, key: Key[Any]) -> StoredModel | None:
        catalog = self.catalog
        match key:
            case CatalogNameKey():
                name = key.catalog
                return catalog.catalogs.get(name) or catalog.leaving_catalogs.get(name)
            case SchemaNameKey():
                schema = (key.catalog, key.schema)
                return catalog.schemas.get(schema) or catalog.leaving.get(schema)
            case TableNameKey():
                names = catalog.names.get((key.catalog, key.schema))
                table_id = None if names is None else names.get(key.table)
                return None if table_id is None else TableNameRecord(table_id=table_id)
            case TableInfoKey():
                table = self._living(key.table_id)
                return None if table is None else table.info
            case TableRouteKey():
                table = self._living(key.table_id)
                return None if table is None else table.route
            case RemovedTableInfoKey():
                return self._dropped(key.table_id, RemovedTableInfo, "info")
            case RemovedTableRouteKey():
                return self._dropped(key.table_id, RemovedTableRoute, "route")
            case _:
                return self._value_of_placing(key)

    def _value_of_placing(self, key: Key[Any]) -> StoredModel | None:
        catalog = self.catalog
        match key:
            case PlacementKey():
                return catalog.placing.placements.get(key.name)
            case TablespaceKey():
                return catalog.placing.tablespaces_of(key.catalog).get(key.name)
            case GroupedTableKey():
                tables = catalog.placing.grouped_in(key.tablespace_id)
                return GroupedTable(table_id=key.table_id) if key.table_id in tables else None
            case PlacedTableKey():
                profile = catalog.placing.placed_in(key.placement_id).get(key.table_id)
                if profile is None:
                    return None
                info = catalog.tables[key.table_id].info
                return PlacedTable(table_id=key.table_id, storage_profile=info.storage_profile)
            case _:
                raise KeyError(key)

    def _dropped(self, table_id: int, kind: type[D], field: str) -> D | None:
        """The value below `__removed-`; *field*: what it holds of the table."""
        table = self.catalog.tables.get(table_id)
        if table is None or table.dropped_at_ms is None:
            return None
        drop = {"dropped_at_ms": table.dropped_at_ms, "dropped_by": table.dropped_by}
        return kind(**{field: getattr(table, field)}, **drop)

    def _living(self, table_id: int) -> CatalogTable | None:
        table = self.catalog.tables.get(table_id)
        return None if table is None or table.dropped_at_ms is not None else table

    def inside(self, family: type[K], *leading: str | int) -> Turns[tuple[K, ...]]:
        """Names of schemas or tablespaces in a catalog, of tables in a catalog or schema, or tables
        that use a placement or tablespace; some in a turn."""
        keys = list[K]()
        for some in slices(self._standing(family, *leading)):
            keys += cast("tuple[K, ...]", some)
            yield
        return (yield from sorting(keys, bytes))

    def _standing(self, family: type[Key[Any]], *leading: str | int) -> Iterable[Key[Any]]:
        """The keys of `inside` in no order, each made when it is asked for."""
        placing = self.catalog.placing
        if family is PlacedTableKey:
            number = int(leading[0])
            return (PlacedTableKey(number, each) for each in placing.placed_in(number))
        if family is GroupedTableKey:
            number = int(leading[0])
            return (GroupedTableKey(number, each) for each in placing.grouped_in(number))
        catalog, *schema = map(str, leading)
        if family is TablespaceKey:
            return (TablespaceKey(catalog, name) for name in placing.tablespaces_of(catalog))
        if family is SchemaNameKey:
            stored = chain(self.catalog.schemas, self.catalog.leaving)
            return (SchemaNameKey(*name) for name in stored if name[0] == catalog)
        return (
            TableNameKey(*name, table)
            for name, tables in self._schemas(catalog, *schema)
            for table in tables
        )

    def _schemas(self, catalog: str, *schema: str) -> Iterable[tuple[tuple[str, str], Names]]:
        """Schemas of a catalog with the names of their tables."""
        ordered = self.catalog.ordered
        if schema:
            full = (catalog, schema[0])
            return [(full, ordered[full])] if full in ordered else []
        return ((name, tables) for name, tables in ordered.items() if name[0] == catalog)
