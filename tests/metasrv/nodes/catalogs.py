"""Applied catalogs with the tables that a test names."""

from keys.catalog.catalog import Catalog
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import (
    CatalogCreated,
    CatalogUpdate,
    Entry,
    SchemaCreated,
)


def catalog_of(*entries: Entry) -> Catalog:
    first: tuple[Entry, ...] = (
        CatalogCreated(info=CatalogInfo(catalog_id=1, name="main", created_at_ms=0)),
        SchemaCreated(info=SchemaInfo(schema_id=1, catalog="main", name="public", created_at_ms=0)),
    )
    update = CatalogUpdate(version=1, at_ms=1, procedure=None, entries=first + entries)
    return Catalog().apply(update, 1)
