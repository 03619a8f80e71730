"""Events of catalogs and schemas, of their log entries. Pure."""

from keys.model import log
from keys.model.catalogs import CatalogInfo, SchemaInfo
from metasrv.service.bodies.shapes import time_of
from metasrv.service.events.facts import VersionFacts
from metasrv_base.wire.events.events import CatalogEvent
from metasrv_base.wire.events.namespace_events import (
    CatalogAlteredEvent,
    CatalogCreatedEvent,
    CatalogDroppedEvent,
    CatalogDroppingEvent,
    SchemaCreatedEvent,
    SchemaDroppedEvent,
    SchemaDroppingEvent,
)

CatalogEntry = log.CatalogCreated | log.CatalogAltered | log.CatalogDropping | log.CatalogDropped
SchemaEntry = log.SchemaCreated | log.SchemaDropping | log.SchemaDropped


class _OfCatalog(VersionFacts):
    catalog_id: int
    catalog: str


class _OfSchema(VersionFacts):
    schema_id: int
    catalog: str
    schema_name: str


def catalog_event(facts: VersionFacts, entry: CatalogEntry, info: CatalogInfo) -> CatalogEvent:
    """Returns the event of *entry*. *info* is its catalog, of which the entry may have the name
    alone."""
    named = _OfCatalog(**facts, catalog_id=info.catalog_id, catalog=info.name)
    match entry:
        case log.CatalogCreated():
            created_at = time_of(info.created_at_ms)
            return CatalogCreatedEvent(**named, options=info.options, created_at=created_at)
        case log.CatalogAltered():
            return CatalogAlteredEvent(**named)
        case log.CatalogDropping():
            return CatalogDroppingEvent(**named)
        case log.CatalogDropped():
            return CatalogDroppedEvent(**named)


def schema_event(facts: VersionFacts, entry: SchemaEntry, info: SchemaInfo) -> CatalogEvent:
    """Returns the event of *entry*. *info* is its schema, of which the entry may have the name
    alone."""
    named = _OfSchema(
        **facts, schema_id=info.schema_id, catalog=info.catalog, schema_name=info.name
    )
    match entry:
        case log.SchemaCreated():
            created_at = time_of(info.created_at_ms)
            return SchemaCreatedEvent(**named, options=info.options, created_at=created_at)
        case log.SchemaDropping():
            return SchemaDroppingEvent(**named)
        case log.SchemaDropped():
            return SchemaDroppedEvent(**named)
