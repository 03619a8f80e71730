"""Events of placements and tablespaces."""

from typing import Literal

from metasrv_base.wire.api.placing.placements import PlacementDefinition, TablespaceDefinition
from metasrv_base.wire.events.event_base import CatalogEventBase
from metasrv_base.wire.model import Int64


class OfPlacementEvent(CatalogEventBase):
    placement_id: Int64
    placement: str
    """Its name."""


class PlacementCreatedEvent(OfPlacementEvent):
    type: Literal["placement.created"] = "placement.created"
    definition: PlacementDefinition


class PlacementAlteredEvent(OfPlacementEvent):
    type: Literal["placement.altered"] = "placement.altered"
    definition: PlacementDefinition


class PlacementRenamedEvent(OfPlacementEvent):
    type: Literal["placement.renamed"] = "placement.renamed"
    previous_placement: str
    """The name before."""
    definition: PlacementDefinition


class PlacementDroppedEvent(OfPlacementEvent):
    type: Literal["placement.dropped"] = "placement.dropped"


class OfTablespaceEvent(CatalogEventBase):
    tablespace_id: Int64
    catalog: str
    tablespace: str
    """Its name."""


class TablespaceCreatedEvent(OfTablespaceEvent):
    type: Literal["tablespace.created"] = "tablespace.created"
    definition: TablespaceDefinition


class TablespaceAlteredEvent(OfTablespaceEvent):
    type: Literal["tablespace.altered"] = "tablespace.altered"
    definition: TablespaceDefinition


class TablespaceRenamedEvent(OfTablespaceEvent):
    type: Literal["tablespace.renamed"] = "tablespace.renamed"
    previous_tablespace: str
    """The name before, in the same catalog."""
    definition: TablespaceDefinition


class TablespaceDroppedEvent(OfTablespaceEvent):
    type: Literal["tablespace.dropped"] = "tablespace.dropped"
