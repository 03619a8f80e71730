"""Snapshots from an applied catalog instead of from the store.

The leader applies each commit of its term before it answers it, so its catalog is no older than a
linearizable read. A catalog holds values, and of schemas the revisions of their keys; of tables it
proves only that keys do not exist. A transaction compares what it was told here as it compares what
it read: a revision that is wrong is refused, and changes nothing.
"""

from typing import Any

from keys.catalog.catalog import Catalog
from keys.commit.txn import Read, Snapshot
from keys.key import Key
from keys.model.catalogs import SchemaNameKey
from keys.model.tables import TableInfoKey, TableNameKey, TableRouteKey

ABSENT = Read(None, 0)


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
            return None if revision is None else Read(catalog.schemas[name], revision)
        case TableNameKey():
            names = catalog.names.get((key.catalog, key.schema))
            return ABSENT if names is None or key.table not in names else None
        case TableInfoKey() | TableRouteKey():
            return None if key.table_id in catalog.tables else ABSENT
        case _:
            return None
