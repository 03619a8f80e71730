"""A catalog made of events alone, and the same of what direct reads show."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import Placing, PlacingNames
from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.placement_shapes import placement_definition, tablespace_definition
from metasrv.service.bodies.shapes import region_location, table_definition
from metasrv.service.events.event_filter import EventFilter, EventScope
from metasrv_base.wire.api.placing.placements import PlacementDefinition, TablespaceDefinition
from metasrv_base.wire.api.tables import ColumnBody, TableDefinition
from metasrv_base.wire.events import element_events as element
from metasrv_base.wire.events import namespace_events as namespace
from metasrv_base.wire.events import placing_events as placing
from metasrv_base.wire.events import table_events as table
from metasrv_base.wire.events.events import CatalogEvent

Shown = Mapping[str, Any]
PLACED = (element.ColumnTypeChangedEvent, element.ColumnAddedEvent)


@dataclass
class MirrorTable:
    """A table as events have told of it: its definition, and the same by the elements' events."""

    definition: TableDefinition
    regions: dict[str, object]
    is_hidden: bool = False
    columns: list[ColumnBody] = field(default_factory=list)
    listed: dict[tuple[str, int], bool] = field(default_factory=dict)
    """Indexes and constraints -> whether they are public."""

    def __post_init__(self) -> None:
        self.columns = public(self.definition)
        self.listed = elements(self.definition)

    def faults(self) -> Iterable[str]:
        """Yields where the events of elements contradict the definition."""
        if [shape(each) for each in self.columns] != [shape(e) for e in public(self.definition)]:
            yield f"columns {self.columns} of {self.definition}"
        if self.listed != elements(self.definition):
            yield f"elements {self.listed} of {self.definition}"


def public(definition: TableDefinition) -> list[ColumnBody]:
    return [column for column in definition.columns if column.state == "public"]


def shape(column: ColumnBody) -> object:
    return column.id, column.name, column.type, column.nullable, column.default


def elements(definition: TableDefinition) -> dict[tuple[str, int], bool]:
    indexes = {("index", each.id): each.state == "public" for each in definition.indexes}
    rules = {("constraint", each.id): each.state == "public" for each in definition.constraints}
    return {**indexes, **rules}


@dataclass
class EventMirror:
    """Takes the events of one version after the other. *wanted*: as they were asked for."""

    wanted: EventFilter = field(default_factory=EventFilter)
    catalogs: dict[str, int] = field(default_factory=dict)
    schemas: dict[tuple[str, str], int] = field(default_factory=dict)
    tables: dict[int, MirrorTable] = field(default_factory=dict)
    dropped: dict[int, str] = field(default_factory=dict)
    placements: dict[str, PlacementDefinition] = field(default_factory=dict)
    tablespaces: dict[tuple[str, str], TablespaceDefinition] = field(default_factory=dict)

    @classmethod
    def of(cls, catalog: Catalog, wanted: EventFilter | None = None) -> "EventMirror":
        """As a reader of *catalog* begins."""
        mirror = cls(wanted or EventFilter())
        mirror.catalogs = {name: info.catalog_id for name, info in catalog.catalogs.items()}
        kept = catalog.placing
        mirror.placements = {
            name: placement_definition(info) for name, info in kept.placements.items()
        }
        mirror.tablespaces = {
            (info.catalog, info.name): tablespace_definition(info)
            for spaces in kept.tablespaces.values()
            for info in spaces.values()
        }
        mirror.schemas = {name: info.schema_id for name, info in catalog.schemas.items()}
        for id, found in catalog.tables.items():
            if mirror._selects(found.info.full_name, id):
                if found.dropped_at_ms is None:
                    mirror.tables[id] = MirrorTable(
                        table_definition(found.info, catalog.placing),
                        {
                            each.region_id: region_location(each)
                            for each in found.route.region_routes
                        },
                        not catalog.shows(found),
                    )
                else:
                    mirror.dropped[id] = found.info.full_name
        return mirror

    def _selects(self, full_name: str, table_id: int) -> bool:
        catalog, schema, name = full_name.split(".")
        return self.wanted.selects(EventScope(catalog, schema, name, table_id))

    def take(self, events: Iterable[CatalogEvent]) -> None:
        """Applies the events of one version. A table whose elements' events contradict its
        definition is a failure."""
        touched: set[int] = set()
        for is_placed, some in groupby(events, lambda event: isinstance(event, PLACED)):
            run = tuple(some)
            touched |= {event.table_id for event in run if isinstance(event, table.OfTableEvent)}
            if is_placed:
                self._place(run)
                continue
            for event in run:
                match event:
                    case namespace.OfCatalogEvent():
                        self._catalog(event)
                    case namespace.OfSchemaEvent():
                        self._schema(event)
                    case table.OfTableEvent():
                        self._table(event)
                    case placing.OfPlacementEvent():
                        self._placement(event)
                    case placing.OfTablespaceEvent():
                        self._tablespace(event)
        faults = [
            fault for id in touched & self.tables.keys() for fault in self.tables[id].faults()
        ]
        assert not faults, faults

    def _place(self, run: Iterable[Any]) -> None:
        """Columns that came, by position, once those in whose place they come are gone."""
        for event in run:
            columns = self.tables[event.table_id].columns
            old = getattr(event, "previous_id", None)
            columns[:] = [each for each in columns if each.id != old]
        for event in run:
            self.tables[event.table_id].columns.insert(event.position, event.column)

    def _catalog(self, event: namespace.OfCatalogEvent) -> None:
        if isinstance(event, namespace.CatalogCreatedEvent):
            self.catalogs[event.catalog] = event.catalog_id
            return
        if isinstance(event, namespace.CatalogAlteredEvent):
            assert self.catalogs.get(event.catalog, event.catalog_id) == event.catalog_id
            return
        self.catalogs.pop(event.catalog, None)
        self._hide(event.catalog, None)

    def _schema(self, event: namespace.OfSchemaEvent) -> None:
        name = (event.catalog, event.schema_name)
        if isinstance(event, namespace.SchemaCreatedEvent):
            self.schemas[name] = event.schema_id
            return
        self.schemas.pop(name, None)
        self._hide(*name)

    def _placement(self, event: placing.OfPlacementEvent) -> None:
        match event:
            case placing.PlacementDroppedEvent():
                assert self.placements.pop(event.placement).id == event.placement_id
                return
            case placing.PlacementRenamedEvent():
                assert self.placements.pop(event.previous_placement).id == event.placement_id
                self._rename("placement", event.previous_placement, event.placement)
            case placing.PlacementAlteredEvent():
                assert self.placements[event.placement].id == event.placement_id
        definition = PlacementDefinition.model_validate(event.model_dump()["definition"])
        self.placements[event.placement] = definition

    def _tablespace(self, event: placing.OfTablespaceEvent) -> None:
        name = (event.catalog, event.tablespace)
        match event:
            case placing.TablespaceDroppedEvent():
                assert self.tablespaces.pop(name).id == event.tablespace_id
                return
            case placing.TablespaceRenamedEvent():
                old = (event.catalog, event.previous_tablespace)
                assert self.tablespaces.pop(old).id == event.tablespace_id
                self._rename("tablespace", event.previous_tablespace, event.tablespace, old[0])
            case placing.TablespaceAlteredEvent():
                assert self.tablespaces[name].id == event.tablespace_id
        definition = TablespaceDefinition.model_validate(event.model_dump()["definition"])
        self.tablespaces[name] = definition

    def _rename(self, field: str, old: str, new: str, catalog: str | None = None) -> None:
        """Renames a placement, or a tablespace of *catalog*: its tables do not change, and have no
        event."""
        for each in self.tables.values():
            own = each.definition
            if getattr(own, field) == old and catalog in (None, own.catalog):
                each.definition = own.model_copy(update={field: new})

    def _hide(self, catalog: str, schema: str | None) -> None:
        for each in self.tables.values():
            own = each.definition
            if own.catalog == catalog and schema in (None, own.schema_name):
                each.is_hidden = True

    def _table(self, event: table.OfTableEvent) -> None:
        id = event.table_id
        match event:
            case table.TableCreatedEvent() | table.NamedAnewEvent():
                self.dropped.pop(id, None)
                self.tables.pop(id, None)
                self._comes(event.definition, event.regions)
            case table.TableAlteredEvent():
                self.tables[id].definition = event.definition
            case table.TableDroppingEvent() | table.TableDropUndoneEvent():
                self.tables[id].is_hidden = isinstance(event, table.TableDroppingEvent)
            case table.TableDroppedEvent():
                del self.tables[id]
                self.dropped[id] = f"{event.catalog}.{event.schema_name}.{event.table}"
            case table.TablePurgedEvent():
                del self.dropped[id]
            case table.RouteChangedEvent() if id in self.dropped:
                return  # reads show no regions of it
            case table.RouteChangedEvent():
                self.tables[id].regions |= {each.region_id: each for each in event.regions}
            case _ if event.type.startswith("column."):
                self._column(self.tables[id].columns, event)
            case _:
                self._listed(self.tables[id], event)

    def _comes(self, definition: TableDefinition, regions: Iterable[Any]) -> None:
        full_name = f"{definition.catalog}.{definition.schema_name}.{definition.name}"
        if self._selects(full_name, definition.id):
            places = {each.region_id: each for each in regions}
            self.tables[definition.id] = MirrorTable(definition, places)

    def _column(self, columns: list[ColumnBody], event: table.OfTableEvent) -> None:
        """All but those that have a position."""
        match event:
            case element.ColumnDroppedEvent(column_id=id):
                columns[:] = [each for each in columns if each.id != id]
            case element.ColumnRenamedEvent(column_id=id, column_name=name):
                new = {"name": name}
                columns[:] = [
                    each.model_copy(update=new) if each.id == id else each for each in columns
                ]
            case element.ColumnAlteredEvent(column=column):
                columns[:] = [column if each.id == column.id else each for each in columns]

    def _listed(self, own: MirrorTable, event: table.OfTableEvent) -> None:
        what, verb = event.type.split(".")
        is_new = verb == "created"
        key = (what, getattr(event, what).id if is_new else getattr(event, f"{what}_id"))
        rules = {each.id for each in own.definition.constraints}
        is_said_by_column = what == "constraint" and key[1] not in rules
        if verb == "dropped" or (verb == "public" and is_said_by_column):
            del own.listed[key]
        else:
            own.listed[key] = verb == "public"

    def shown(self) -> Shown:
        """As `Reads.shown`."""
        return {
            "tables": {
                id: (known_by(self.wanted, each.definition), each.regions)
                for id, each in self.tables.items()
                if not each.is_hidden
            },
            "dropped": self.dropped,
        }


def known_by(wanted: EventFilter, definition: TableDefinition) -> TableDefinition:
    """The part that a reader with a filter knows: it hears of no placement that is renamed."""
    if wanted == EventFilter():
        return definition
    return definition.model_copy(update={"placement": None, "tablespace": None})


def places_of(found: CatalogTable) -> dict[str, object]:
    return {each.region_id: region_location(each) for each in found.route.region_routes}


Shape = tuple[TableDefinition, dict[str, object]]


class Reads:
    """Answers of direct reads of a catalog, version after version."""

    def __init__(self) -> None:
        self._tables: dict[int, tuple[CatalogTable, PlacingNames, Shape]] = {}

    def shown(self, catalog: Catalog, wanted: EventFilter) -> Shown:
        """The tables that *wanted* selects."""
        tables, dropped = {}, {}
        for id, found in catalog.tables.items():
            info = found.info
            scope = EventScope(info.catalog, info.schema_name, info.name, id)
            if not wanted.selects(scope):
                continue
            if found.dropped_at_ms is not None:
                dropped[id] = info.full_name
            elif catalog.find(info.catalog, info.schema_name, info.name) is found:
                definition, regions = self._shape(id, found, catalog.placing)
                tables[id] = known_by(wanted, definition), regions
        return {"tables": tables, "dropped": dropped}

    def _shape(self, id: int, found: CatalogTable, placing: Placing) -> Shape:
        kept, names = self._tables.get(id), placing.names_of(found.info)
        if kept is None or kept[0] is not found or kept[1] != names:
            shape = table_definition(found.info, placing), places_of(found)
            kept = self._tables[id] = found, names, shape
        return kept[2]
