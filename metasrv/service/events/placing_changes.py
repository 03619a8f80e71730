"""Events of placements and tablespaces, of their log entries. Pure."""

from keys.model import log
from keys.model.log import PlacementEntry, TablespaceEntry
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from metasrv.service.bodies.placement_shapes import placement_definition, tablespace_definition
from metasrv.service.events.facts import VersionFacts
from metasrv_base.wire.events.events import CatalogEvent
from metasrv_base.wire.events.placing_events import (
    PlacementAlteredEvent,
    PlacementCreatedEvent,
    PlacementDroppedEvent,
    PlacementRenamedEvent,
    TablespaceAlteredEvent,
    TablespaceCreatedEvent,
    TablespaceDroppedEvent,
    TablespaceRenamedEvent,
)


class _OfPlacement(VersionFacts):
    placement_id: int
    placement: str


class _OfTablespace(VersionFacts):
    tablespace_id: int
    catalog: str
    tablespace: str


def placement_event(
    facts: VersionFacts, entry: PlacementEntry, info: PlacementInfo
) -> CatalogEvent:
    """Returns the event of *entry*. *info* is its placement, of which the entry may have the name
    alone."""
    named = _OfPlacement(**facts, placement_id=info.placement_id, placement=info.name)
    match entry:
        case log.PlacementCreated():
            return PlacementCreatedEvent(**named, definition=placement_definition(info))
        case log.PlacementAltered():
            return PlacementAlteredEvent(**named, definition=placement_definition(info))
        case log.PlacementRenamed(name=name):
            definition = placement_definition(info)
            return PlacementRenamedEvent(**named, previous_placement=name, definition=definition)
        case log.PlacementDropped():
            return PlacementDroppedEvent(**named)


def tablespace_event(
    facts: VersionFacts, entry: TablespaceEntry, info: TablespaceInfo
) -> CatalogEvent:
    """Returns the event of *entry*. *info* is its tablespace, of which the entry may have the name
    alone."""
    named = _OfTablespace(
        **facts, tablespace_id=info.tablespace_id, catalog=info.catalog, tablespace=info.name
    )
    match entry:
        case log.TablespaceCreated():
            return TablespaceCreatedEvent(**named, definition=tablespace_definition(info))
        case log.TablespaceAltered():
            return TablespaceAlteredEvent(**named, definition=tablespace_definition(info))
        case log.TablespaceRenamed(name=name):
            definition = tablespace_definition(info)
            return TablespaceRenamedEvent(**named, previous_tablespace=name, definition=definition)
        case log.TablespaceDropped():
            return TablespaceDroppedEvent(**named)
