"""Snapshots from an applied catalog instead of from the store.

The leader applies each commit of its term before it answers it, so its catalog is no older than a
linearizable read. A catalog holds values, and of schemas the revisions of their keys; of tables it
proves only that keys do not exist. A transaction compares what it was told here as it compares what
it read: a revision that is wrong is refused, and changes nothing.
"""

from dataclasses import dataclass
from typing import Any, TypeVar, cast

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.commit.txn import UNKNOWN_REVISION, Read, Snapshot
from keys.key import Key
from keys.model.catalogs import CatalogNameKey, SchemaNameKey
from keys.model.tables import TableInfoKey, TableNameKey, TableNameRecord, TableRouteKey
from keys.value import StoredModel

ABSENT = Read(None, 0)
V = TypeVar("V", bound=StoredModel)
K = TypeVar("K", bound=Key[Any])


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
        case TableInfoKey() | TableRouteKey():
            return None if key.table_id in catalog.tables else ABSENT
        case _:
            return None


@dataclass(frozen=True, slots=True)
class CatalogByKey:
    """Living tables, and what they stand in."""

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
            case _:
                raise KeyError(key)

    def _living(self, table_id: int) -> CatalogTable | None:
        table = self.catalog.tables.get(table_id)
        return None if table is None or table.dropped_at_ms is not None else table

    def inside(self, family: type[K], *leading: str) -> tuple[K, ...]:
        """Names of schemas in a catalog, or of tables in a catalog or schema."""
        catalog, *schema = leading
        if family is SchemaNameKey:
            stored = (*self.catalog.schemas, *self.catalog.leaving)
            keys: list[Key[Any]] = [SchemaNameKey(*name) for name in stored if name[0] == catalog]
        else:
            keys = [
                TableNameKey(*name, table)
                for name, names in self._schemas(catalog, *schema)
                for table in names
            ]
        return tuple(cast("K", key) for key in sorted(keys, key=bytes))

    def _schemas(self, catalog: str, *schema: str) -> list[tuple[tuple[str, str], Any]]:
        names = self.catalog.names
        if schema:
            full = (catalog, schema[0])
            return [(full, names[full])] if full in names else []
        return [(name, tables) for name, tables in names.items() if name[0] == catalog]
