"""An event of the catalog in one line for people. Pure."""

import json
from collections.abc import Sequence

from metasrv.cli.cluster.copies_text import copies_text
from metasrv_base.wire.api.tables import ColumnBody, RegionLocation
from metasrv_base.wire.events import element_events as element
from metasrv_base.wire.events import namespace_events as namespace
from metasrv_base.wire.events import placing_events as placing
from metasrv_base.wire.events import table_events as table
from metasrv_base.wire.events.events import CatalogEvent

REGIONS_SHOWN = 4


def words(event: CatalogEvent) -> str:
    """The object that changed, and how, beyond the type of the event."""
    match event:
        case namespace.OfCatalogEvent():
            return f"{event.catalog} (id {event.catalog_id})"
        case namespace.OfSchemaEvent():
            return f"{event.catalog}.{event.schema_name} (id {event.schema_id})"
        case table.OfTableEvent():
            name = f"{event.catalog}.{event.schema_name}.{event.table}"
            detail = _of_element(event) or _of_table(event)
            return f"{name}: {detail}" if detail else name
        case placing.OfPlacementEvent():
            return f"{event.placement} (id {event.placement_id}{_was(event)})"
        case placing.OfTablespaceEvent():
            return f"{event.catalog}.{event.tablespace} (id {event.tablespace_id}{_was(event)})"


def _was(event: placing.OfPlacementEvent | placing.OfTablespaceEvent) -> str:
    match event:
        case placing.PlacementRenamedEvent(previous_placement=old):
            return f", was {old}"
        case placing.TablespaceRenamedEvent(previous_tablespace=old):
            return f", was {event.catalog}.{old}"
        case _:
            return ""


def _of_table(event: table.OfTableEvent) -> str:
    match event:
        case table.TableRenamedEvent() | table.TableUndroppedEvent():
            old = f"{event.previous_catalog}.{event.previous_schema}.{event.previous_table}"
            return f"id {event.table_id}, was {old}"
        case table.TableAlteredEvent():
            own = event.definition
            return f"version {own.version}, schema version {own.schema_version}"
        case table.RouteChangedEvent():
            return _places(event.regions)
        case _:
            return f"id {event.table_id}"


def _places(regions: Sequence[RegionLocation]) -> str:
    shown = [_place(region) for region in regions[:REGIONS_SHOWN]]
    left = len(regions) - len(shown)
    return "; ".join([*shown, f"and {left} more"] if left else shown)


def _place(region: RegionLocation) -> str:
    leader = region.leader or "no node"
    copies = f", copies {copies_text(region.copies)}" if region.copies else ""
    return f"region {region.number} {region.state} on {leader}, epoch {region.epoch}{copies}"


def _of_element(event: table.OfTableEvent) -> str:
    match event:
        case element.ColumnAddedEvent() | element.ColumnAlteredEvent():
            return _column(event.column)
        case element.ColumnTypeChangedEvent():
            return f"{event.column.name} {event.previous_type} to {event.column.type}"
        case element.ColumnRenamedEvent():
            return f"{event.previous_name} to {event.column_name}"
        case element.ColumnDroppedEvent():
            return event.column_name
        case element.IndexCreatedEvent():
            index = event.index
            unique = "unique " if index.unique else ""
            return f"{unique}{index.name} ({', '.join(index.columns)})"
        case element.OfIndexEvent():
            return event.index_name
        case element.ConstraintCreatedEvent():
            rule = event.constraint
            return f"{rule.name} {rule.kind} ({rule.expression or ', '.join(rule.columns)})"
        case element.OfConstraintEvent():
            return event.constraint_name
        case _:
            return ""


def _column(column: ColumnBody) -> str:
    null = "" if column.nullable else " not null"
    value = "" if column.default is None else f" default {json.dumps(column.default)}"
    return f"{column.name} {column.type}{null}{value}"
