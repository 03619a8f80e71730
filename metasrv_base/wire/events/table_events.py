"""Events of tables as a whole, and of the places of their regions."""

from typing import Literal

from pydantic import Field

from metasrv_base.wire.api.tables import RegionLocation, TableDefinition
from metasrv_base.wire.events.event_base import CatalogEventBase
from metasrv_base.wire.model import Int64, Listed


class OfTableEvent(CatalogEventBase):
    """The names are those that the table bears at the version, or bore last."""

    table_id: Int64
    catalog: str
    schema_name: str = Field(alias="schema")
    table: str


class TableCreatedEvent(OfTableEvent):
    type: Literal["table.created"] = "table.created"
    definition: TableDefinition
    regions: Listed[RegionLocation]


class NamedAnewEvent(OfTableEvent):
    """The table bears another name, perhaps. It is told in full to whoever follows the new name."""

    previous_catalog: str
    previous_schema: str
    previous_table: str
    definition: TableDefinition
    regions: Listed[RegionLocation]


class TableRenamedEvent(NamedAnewEvent):
    """Two tables that exchange their names are two such events of one version."""

    type: Literal["table.renamed"] = "table.renamed"


class TableAlteredEvent(OfTableEvent):
    """A new version of the table: one such event for each, beside those of its elements."""

    type: Literal["table.altered"] = "table.altered"
    definition: TableDefinition


class TableDroppingEvent(OfTableEvent):
    """A drop has begun: no new statement and no reader finds the table."""

    type: Literal["table.dropping"] = "table.dropping"


class TableDropUndoneEvent(OfTableEvent):
    """The drop was cancelled: readers find the table again, as it was."""

    type: Literal["table.drop_undone"] = "table.drop_undone"


class TableDroppedEvent(OfTableEvent):
    """The name is free; an undrop brings the table back until it is purged."""

    type: Literal["table.dropped"] = "table.dropped"
    dropped_at: str
    """RFC 3339."""


class TableUndroppedEvent(NamedAnewEvent):
    """A dropped table stands again, under the name that it bore or another one."""

    type: Literal["table.undropped"] = "table.undropped"


class TablePurgedEvent(OfTableEvent):
    """A dropped table was deleted for good."""

    type: Literal["table.purged"] = "table.purged"


class RouteChangedEvent(OfTableEvent):
    """Regions have another leader, another state or another epoch: a failover, a truncate. Those of
    a dropped table too, when they leave a node that is drained."""

    type: Literal["route.changed"] = "route.changed"
    route_version: Int64
    regions: Listed[RegionLocation]
    """The regions that changed."""
