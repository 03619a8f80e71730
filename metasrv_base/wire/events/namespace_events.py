"""Events of catalogs and schemas."""

from typing import Literal

from pydantic import Field

from metasrv_base.wire.events.event_base import CatalogEventBase
from metasrv_base.wire.model import Int64


class OfCatalogEvent(CatalogEventBase):
    catalog_id: Int64
    catalog: str
    """Its name."""


class CatalogCreatedEvent(OfCatalogEvent):
    type: Literal["catalog.created"] = "catalog.created"
    options: dict[str, str]
    created_at: str
    """RFC 3339."""


class CatalogAlteredEvent(OfCatalogEvent):
    """Its settings or limits are others; `GET /v1/catalogs/{catalog}` shows them."""

    type: Literal["catalog.altered"] = "catalog.altered"


class CatalogDroppingEvent(OfCatalogEvent):
    """A drop has begun: no reader sees the catalog, its schemas and their tables any more."""

    type: Literal["catalog.dropping"] = "catalog.dropping"


class CatalogDroppedEvent(OfCatalogEvent):
    type: Literal["catalog.dropped"] = "catalog.dropped"


class OfSchemaEvent(CatalogEventBase):
    schema_id: Int64
    catalog: str
    schema_name: str = Field(alias="schema")
    """Its name."""


class SchemaCreatedEvent(OfSchemaEvent):
    type: Literal["schema.created"] = "schema.created"
    options: dict[str, str]
    created_at: str
    """RFC 3339."""


class SchemaDroppingEvent(OfSchemaEvent):
    """A drop has begun: no reader sees the schema and its tables any more."""

    type: Literal["schema.dropping"] = "schema.dropping"


class SchemaDroppedEvent(OfSchemaEvent):
    type: Literal["schema.dropped"] = "schema.dropped"
