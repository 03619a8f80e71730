"""The events of one version of the catalog: its log entries, on the catalog before them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from keys.catalog.catalog import Catalog
from keys.catalog.parts.placing import Placing
from keys.model import log
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import CatalogUpdate, Entry, PlacementEntry, TablespaceEntry
from keys.model.placing.placements import PlacementInfo
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import RegionRoute, TableInfo, TableRoute
from metasrv.service.bodies.shapes import region_location, table_definition, time_of
from metasrv.service.events.element_changes import element_events
from metasrv.service.events.facts import TableFacts, VersionFacts, table_facts, version_facts
from metasrv.service.events.namespace_changes import (
    CatalogEntry,
    SchemaEntry,
    catalog_event,
    schema_event,
)
from metasrv.service.events.placing_changes import placement_event, tablespace_event
from metasrv_base.errors import Corrupt
from metasrv_base.wire.api.tables import RegionLocation
from metasrv_base.wire.events.events import CatalogEvent
from metasrv_base.wire.events.table_events import (
    RouteChangedEvent,
    TableAlteredEvent,
    TableCreatedEvent,
    TableDroppedEvent,
    TableDroppingEvent,
    TableDropUndoneEvent,
    TablePurgedEvent,
    TableRenamedEvent,
    TableUndroppedEvent,
)

ByIdEntry = log.TableDropped | log.TablePurged | log.RouteChanged | log.DroppedRouteChanged


def events_of(before: Catalog, update: CatalogUpdate) -> Iterator[CatalogEvent]:
    """Yields the events of *update*, which follows *before*, in the order of its entries: at least
    one for each entry. Raises Corrupt for an entry that cannot follow."""
    assert update.version == before.version + 1
    fold = _Fold(before, version_facts(update))
    for entry in update.entries:
        yield from fold.events(entry)


@dataclass(slots=True)
class _Fold:
    """The catalog in the middle of an update: an entry may change what one before it has made."""

    before: Catalog
    facts: VersionFacts
    catalogs: dict[str, CatalogInfo] = field(default_factory=dict)
    schemas: dict[tuple[str, str], SchemaInfo] = field(default_factory=dict)
    tables: dict[int, tuple[TableInfo, TableRoute]] = field(default_factory=dict)
    placements: dict[str, PlacementInfo] = field(default_factory=dict)
    tablespaces: dict[tuple[str, str], TablespaceInfo] = field(default_factory=dict)
    placing: Placing = field(init=False)
    """The names of placements and tablespaces; who uses them does not count."""

    def __post_init__(self) -> None:
        self.placing = self.before.placing.unused()

    def events(self, entry: Entry) -> Iterator[CatalogEvent]:
        match entry:
            case (
                log.CatalogCreated()
                | log.CatalogAltered()
                | log.CatalogDropping()
                | log.CatalogDropped()
            ):
                yield catalog_event(self.facts, entry, self._catalog(entry))
            case log.SchemaCreated() | log.SchemaDropping() | log.SchemaDropped():
                yield schema_event(self.facts, entry, self._schema(entry))
            case log.TableCreated():
                yield self._created(entry)
            case log.TableUndropped():
                yield self._named_anew(TableUndroppedEvent, entry.info, entry.route)
            case (
                log.TableDropped()
                | log.TablePurged()
                | log.RouteChanged()
                | log.DroppedRouteChanged()
            ):
                yield self._by_id(entry)
            case log.TableRenamed():
                yield self._named_anew(TableRenamedEvent, entry.info)
            case log.TablesExchanged():
                yield self._named_anew(TableRenamedEvent, entry.first)
                yield self._named_anew(TableRenamedEvent, entry.second)
            case log.TableAltered():
                yield from self._altered(entry.info)
            case (
                log.PlacementCreated()
                | log.PlacementAltered()
                | log.PlacementRenamed()
                | log.PlacementDropped()
            ):
                yield placement_event(self.facts, entry, self._placement(entry))
                self.placing = self.placing.apply(entry)
            case _:
                self.placing = self.placing.apply(entry)
                yield tablespace_event(self.facts, entry, self._tablespace(entry))

    def _catalog(self, entry: CatalogEntry) -> CatalogInfo:
        if not isinstance(entry, log.CatalogDropped):
            self.catalogs[entry.info.name] = entry.info
            return entry.info
        for infos in (self.catalogs, self.before.catalogs, self.before.leaving_catalogs):
            if entry.name in infos:
                return infos[entry.name]
        raise Corrupt(entry=entry.op, catalog=entry.name)

    def _schema(self, entry: SchemaEntry) -> SchemaInfo:
        if not isinstance(entry, log.SchemaDropped):
            self.schemas[entry.info.catalog, entry.info.name] = entry.info
            return entry.info
        name = (entry.catalog, entry.name)
        for infos in (self.schemas, self.before.schemas, self.before.leaving):
            if name in infos:
                return infos[name]
        raise Corrupt(entry=entry.op, schema=name)

    def _placement(self, entry: PlacementEntry) -> PlacementInfo:
        if not isinstance(entry, log.PlacementDropped):
            self.placements[entry.info.name] = entry.info
            return entry.info
        for infos in (self.placements, self.before.placing.placements):
            if entry.name in infos:
                return infos[entry.name]
        raise Corrupt(entry=entry.op, placement=entry.name)

    def _tablespace(self, entry: TablespaceEntry) -> TablespaceInfo:
        if not isinstance(entry, log.TablespaceDropped):
            self.tablespaces[entry.info.catalog, entry.info.name] = entry.info
            return entry.info
        name = (entry.catalog, entry.name)
        info = self.tablespaces.get(name)
        info = info or self.before.placing.tablespaces_of(entry.catalog).get(entry.name)
        if info is None:
            raise Corrupt(entry=entry.op, tablespace=".".join(name))
        return info

    def _table(self, table_id: int, entry: str) -> tuple[TableInfo, TableRoute]:
        """The table before the current entry."""
        if table_id in self.tables:
            return self.tables[table_id]
        table = self.before.tables.get(table_id)
        if table is None:
            raise Corrupt(entry=entry, table_id=table_id)
        return table.info, table.route

    def _created(self, entry: log.TableCreated) -> CatalogEvent:
        info, route = entry.info, entry.route
        self.tables[info.table_id] = info, route
        return TableCreatedEvent(
            **self._named(info),
            definition=table_definition(info, self.placing),
            regions=_locations(route.region_routes),
        )

    def _by_id(self, entry: ByIdEntry) -> CatalogEvent:
        info, route = self._table(entry.table_id, entry.op)
        named = self._named(info)
        match entry:
            case log.TableDropped():
                return TableDroppedEvent(**named, dropped_at=time_of(entry.dropped_at_ms))
            case log.TablePurged():
                return TablePurgedEvent(**named)
            case log.RouteChanged() | log.DroppedRouteChanged():
                self.tables[info.table_id] = info, route.with_regions(entry.regions)
                return RouteChangedEvent(
                    **named, route_version=entry.version, regions=_locations(entry.regions)
                )

    def _named_anew(
        self,
        event: type[TableRenamedEvent | TableUndroppedEvent],
        info: TableInfo,
        route: TableRoute | None = None,
    ) -> CatalogEvent:
        """Returns the event of a table that has a new name. *route* None: its route did not
        change."""
        old, old_route = self._table(info.table_id, event.__name__)
        route = route or old_route
        self.tables[info.table_id] = info, route
        return event(
            **self._named(info),
            previous_catalog=old.catalog,
            previous_schema=old.schema_name,
            previous_table=old.name,
            definition=table_definition(info, self.placing),
            regions=_locations(route.region_routes),
        )

    def _altered(self, info: TableInfo) -> Iterator[CatalogEvent]:
        old, route = self._table(info.table_id, "table.altered")
        self.tables[info.table_id] = info, route
        named = self._named(info)
        yield TableAlteredEvent(**named, definition=table_definition(info, self.placing))
        if info.is_hidden and not old.is_hidden:
            yield TableDroppingEvent(**named)
        elif old.is_hidden and not info.is_hidden:
            yield TableDropUndoneEvent(**named)
        yield from element_events(named, old, info)

    def _named(self, info: TableInfo) -> TableFacts:
        return table_facts(self.facts, info)


def _locations(regions: tuple[RegionRoute, ...]) -> tuple[RegionLocation, ...]:
    return tuple(map(region_location, regions))
