"""The catalog at one version: an immutable value; the next version shares what did not change."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from itertools import chain
from typing import Any, cast, get_args

from immutables import Map

from keys.catalog.maps import Sizes, added, counted, kept, resized, slimmed
from keys.catalog.ordered import Names, with_name, without_name
from keys.catalog.parts import namespaces
from keys.catalog.parts.placing import Placing, named_placement
from keys.catalog.tables.catalog_table import CatalogTable
from keys.catalog.tables.heads import HeldRegions, held_regions, leaders_in
from keys.catalog.tables.partition_groups import Groups, copy_groups_of, groups_of
from keys.catalog.tables.table_map import TableMap
from keys.commit.txn import UNKNOWN_REVISION
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    CatalogUpdate,
    DroppedRouteChanged,
    Entry,
    PlacingEntry,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
    TablesExchanged,
    TablespaceCreated,
    TableUndropped,
)
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID
from keys.model.tables import Column, RegionState, TableInfo, TableRoute
from metasrv_base.concurrency.turns import Turns, at_once
from metasrv_base.errors import Corrupt, NotFound
from metasrv_base.values.frozen import frozen
from metasrv_base.values.intern_fields import Shapes

SchemaName = tuple[str, str]
LedPlaced = Map[int, Map[str, int]]
"""Placement that is not the default one -> node -> how many regions of its living tables the node
leads, if any."""
ENTRIES_AT_ONCE = 16
"""Entries that are applied in one turn of the event loop: less than 1 ms, and 40 ms where each is
of a table in another part of the snapshot, which is inflated for it."""


@frozen
class Catalog:
    """The catalog as of `version`: everything that the log says up to it, and the store's
    revision then."""

    version: int = 0
    revision: int = 0
    at_ms: int = 0
    catalogs: Map[str, CatalogInfo] = field(default_factory=Map)
    schemas: Map[SchemaName, SchemaInfo] = field(default_factory=Map)
    schema_revisions: Map[SchemaName, int] = field(default_factory=Map)
    """The store revision of each schema's key, for those in `schemas`."""
    leaving_catalogs: Map[str, CatalogInfo] = field(default_factory=Map)
    """Being dropped with all they hold: no reader sees them."""
    leaving: Map[SchemaName, SchemaInfo] = field(default_factory=Map)
    """The same of schemas."""
    tables: TableMap = field(default_factory=TableMap)
    """Tables by id, dropped ones too until they are purged."""
    names: Map[SchemaName, Map[str, int]] = field(default_factory=Map)
    """Schema -> name -> id of the table that bears it now; one that is being dropped too."""
    ordered: Map[SchemaName, Names] = field(default_factory=Map)
    """The same names, in order: a page of a list sorts nothing."""
    freed: Map[int, None] = field(default_factory=Map)
    """Living tables that batches have dropped: they bear no name."""
    gone: Map[SchemaName, Map[int, str]] = field(default_factory=Map)
    """Schema -> id of a dropped table -> the name it bore."""
    nodes: Map[str, Map[int, HeldRegions]] = field(default_factory=Map)
    """Node -> ids of the living tables of which it has regions -> those regions."""
    led: Map[str, int] = field(default_factory=Map)
    """Node -> how many of those it leads, if any: every DDL asks, and a node may have regions of
    all tables."""
    led_placed: LedPlaced = field(default_factory=Map)
    held: Map[str, int] = field(default_factory=Map)
    """Node -> of how many of those it has a copy, as leader or not."""
    sizes: Sizes = field(default_factory=Map)
    states: Map[RegionState, int] = field(default_factory=Map)
    """Regions of living tables by state."""
    placing: Placing = field(default_factory=Placing)
    """Placements and tablespaces, and who uses them."""
    shapes: Shapes[Column] = field(default_factory=Shapes, compare=False)
    """Columns that tables share in memory."""

    def apply(self, update: CatalogUpdate, revision: int) -> "Catalog":
        """The next version. Raises Corrupt for a gap or an entry that cannot follow."""
        return at_once(self.applying(update, revision))

    def applying(
        self, update: CatalogUpdate, revision: int, *, entries_at_once: int = ENTRIES_AT_ONCE
    ) -> Turns["Catalog"]:
        """Applies an update as `apply` does, *entries_at_once* in a turn. This catalog is not
        changed: nobody sees a state between two entries."""
        if update.version != self.version + 1:
            raise Corrupt(log="gap", expected=self.version + 1, found=update.version)
        staged = update.staged
        if staged is not None and not update.entries:
            raise Corrupt(batch=staged.batch, reason="an update without its entries")
        of_keys = revision if staged is None else UNKNOWN_REVISION  # they are written after it
        state = replace(self, version=update.version, revision=of_keys, at_ms=update.at_ms)
        for number, entry in enumerate(update.entries, start=1):
            state = _APPLY[type(entry)](state, entry, update.version)
            if number % entries_at_once == 0:
                yield
        return state if staged is None else replace(state, revision=revision)

    def is_visible(self, catalog: str, schema: str) -> bool:
        """Whether readers see the schema: it stands, and neither it nor its catalog is leaving."""
        return catalog in self.catalogs and (catalog, schema) in self.schemas

    def by_id(self, table_id: int) -> CatalogTable | None:
        """Also a dropped one; not a living one that is being dropped, or whose schema is."""
        table = self.tables.get(table_id)
        if table is None or table.dropped_at_ms is not None:
            return table
        return table if self.shows(table) else None

    def shows(self, table: CatalogTable) -> bool:
        """Whether readers see a living table: neither it nor what it is in is being dropped."""
        info = table.info
        return not info.is_hidden and self.is_visible(info.catalog, info.schema_name)

    def find(self, catalog: str, schema: str, name: str) -> CatalogTable | None:
        table_id = self.names.get((catalog, schema), Map()).get(name)
        if table_id is None or not self.shows(self.tables[table_id]):
            return None
        return self.tables[table_id]

    def table(self, catalog: str, schema: str, name: str) -> CatalogTable:
        """Raises NotFound, saying which part of the name does not exist."""
        self.schema(catalog, schema)
        table = self.find(catalog, schema, name)
        if table is None:
            raise NotFound("table-not-found", table=f"{catalog}.{schema}.{name}")
        return table

    def schema(self, catalog: str, schema: str) -> SchemaInfo:
        if catalog not in self.catalogs:
            raise NotFound(what="catalog", name=catalog)
        info = self.schemas.get((catalog, schema))
        if info is None:
            raise NotFound(what="schema", name=f"{catalog}.{schema}")
        return info

    def in_schema(self, catalog: str, schema: str, low: str = "") -> Iterator[CatalogTable]:
        """Living tables that are not being dropped, in order of name, from the name *low* on."""
        key = (catalog, schema)
        names = self.names.get(key, Map())
        living = (self.tables[names[name]] for name in self.ordered.get(key, Names()).starting(low))
        return (table for table in living if not table.info.is_hidden)

    def dropped(self, catalog: str, schema: str, name: str | None = None) -> Iterator[CatalogTable]:
        """Dropped tables that bore that name, oldest first."""
        gone = self.gone.get((catalog, schema), Map())
        for table_id in sorted(
            table_id_of_name
            for table_id_of_name, name_then in gone.items()
            if name in (None, name_then)
        ):
            yield self.tables[table_id]

    def all_dropped(self) -> Iterator[CatalogTable]:
        """Yields the dropped tables of all schemas; does not look at the living ones, which are
        many more."""
        return (self.tables[table_id] for gone in self.gone.values() for table_id in gone)

    def on_node(self, node: str) -> Iterator[CatalogTable]:
        """Living tables of which *node* has a region."""
        return (self.tables[table_id] for table_id in self.nodes.get(node, Map()))

    def led_by(self, node: str) -> int:
        """Returns the number of regions of living tables that *node* leads."""
        return self.led.get(node, 0)

    def led_in(self, placement_id: int) -> Mapping[str, int]:
        """Returns the number of regions of living tables of a placement that each node leads."""
        if placement_id != DEFAULT_PLACEMENT_ID:
            return self.led_placed.get(placement_id, Map[str, int]())
        rest = dict(self.led)
        for node, count in chain.from_iterable(led.items() for led in self.led_placed.values()):
            rest[node] -= count
        return rest

    def held_by(self, node: str) -> int:
        """Returns the number of regions of living tables of which *node* has a copy, those that it
        leads included: what takes its disk."""
        return self.held.get(node, 0)

    def profiles_in_use(self, placement_id: int) -> dict[str, str]:
        """Storage profiles of a placement -> the full name of one living table that uses each. Of
        many tables only so many are decoded."""
        users: dict[str, int] = {}
        for table_id, profile in self.placing.placed_in(placement_id).items():
            users.setdefault(profile, table_id)
        return {name: self.tables[table_id].info.full_name for name, table_id in users.items()}

    def partition_groups(self, info: TableInfo) -> Groups:
        """The groups that regions of a table belong to, by their leaders, its own included. A table
        in `default` has none."""
        return groups_of(self._grouped_with(info))

    def copy_groups(self, info: TableInfo) -> Groups:
        """The same groups, by all copies."""
        return copy_groups_of(self._grouped_with(info))

    def _grouped_with(self, info: TableInfo) -> Iterator[TableRoute]:
        if info.tablespace_id is None:
            return iter(())
        others = self.placing.grouped_in(info.tablespace_id)
        return (self.tables[other].route for other in others)

    # The entries, one function each -----------------------------------------------------------

    def _placing_changed(self, entry: PlacingEntry, version: int) -> "Catalog":
        if isinstance(entry, TablespaceCreated) and entry.info.catalog not in self.catalogs:
            raise Corrupt(entry=entry.op, catalog=entry.info.catalog)
        return replace(self, placing=self.placing.apply(entry))

    def _table_created(self, entry: TableCreated, version: int) -> "Catalog":
        if entry.info.table_id in self.tables:
            raise Corrupt(entry=entry.op, table_id=entry.info.table_id)
        return self._named(CatalogTable.created(entry.info, entry.route, version, self.at_ms))

    def _table_undropped(self, entry: TableUndropped, version: int) -> "Catalog":
        gone = self.tables.get(entry.info.table_id)
        if gone is None or gone.dropped_at_ms is None:
            raise Corrupt(entry=entry.op, table_id=entry.info.table_id)
        table = replace(gone, route=entry.route, dropped_at_ms=None, dropped_by=None)
        return self._forgotten(gone)._named(table.changed(entry.info, version, self.at_ms))

    def _table_dropped(self, entry: TableDropped, version: int) -> "Catalog":
        table = self._living(entry.table_id, entry)
        gone = replace(
            table,
            catalog_version=version,
            dropped_at_ms=entry.dropped_at_ms,
            dropped_by=entry.dropped_by,
        )
        state, schema = self._unnamed(table), (table.info.catalog, table.info.schema_name)
        there = state.gone.get(schema, Map()).set(entry.table_id, table.info.name)
        tables = state.tables.set(entry.table_id, gone)
        return replace(state, tables=tables, gone=state.gone.set(schema, there))

    def _table_purged(self, entry: TablePurged, version: int) -> "Catalog":
        gone = self.tables.get(entry.table_id)
        if gone is None or gone.dropped_at_ms is None:
            raise Corrupt(entry=entry.op, table_id=entry.table_id)
        return replace(self._forgotten(gone), tables=self.tables.delete(entry.table_id))

    def _table_changed(self, entry: TableRenamed | TableAltered, version: int) -> "Catalog":
        table = self._living(entry.info.table_id, entry)
        return self._unnamed(table)._named(table.changed(entry.info, version, self.at_ms))

    def _tables_exchanged(self, entry: TablesExchanged, version: int) -> "Catalog":
        state, named = self, list[CatalogTable]()
        for info in (entry.first, entry.second):
            table = self._living(info.table_id, entry)
            state = state._unnamed(table)
            named.append(table.changed(info, version, self.at_ms))
        for table in named:
            state = state._named(table)
        return state

    def _route_changed(self, entry: RouteChanged, version: int) -> "Catalog":
        table = self._living(entry.table_id, entry)
        route = table.route.with_regions(entry.regions)
        if route.version != entry.version:
            raise Corrupt(entry=entry.op, expected=route.version, found=entry.version)
        new = replace(table, route=route, catalog_version=version)
        return self._unnamed(table)._named(new)

    def _dropped_route_changed(self, entry: DroppedRouteChanged, version: int) -> "Catalog":
        gone = self.tables.get(entry.table_id)
        if gone is None or gone.dropped_at_ms is None:
            raise Corrupt(entry=entry.op, table_id=entry.table_id)
        route = gone.route.with_regions(entry.regions)
        if route.version != entry.version:
            raise Corrupt(entry=entry.op, expected=route.version, found=entry.version)
        new = replace(gone, route=route, catalog_version=version)
        return replace(self, tables=self.tables.set(entry.table_id, new))

    def _living(self, table_id: int, entry: Entry) -> CatalogTable:
        table = self.tables.get(table_id)
        if table is None or table.dropped_at_ms is not None:
            raise Corrupt(entry=entry.op, table_id=table_id)
        return table

    def _forgotten(self, gone: CatalogTable) -> "Catalog":
        """Removes *gone* from the dropped tables of the schema that it was dropped from."""
        schema = (gone.info.catalog, gone.info.schema_name)
        left = self.gone[schema].delete(gone.info.table_id)
        return replace(self, gone=kept(self.gone, schema, left))

    def _named(self, table: CatalogTable) -> "Catalog":
        info, route = table.info, table.route
        nodes, led, held = self.nodes, self.led, self.held
        by_node = held_regions(route)
        for node, regions in by_node.items():
            nodes = nodes.set(node, nodes.get(node, Map()).set(info.table_id, regions))
            led = added(led, node, leaders_in(regions))
            held = added(held, node, len(regions))
        return replace(
            self,
            tables=self.tables.set(info.table_id, table),
            nodes=nodes,
            led=led,
            led_placed=_led_placed(self.led_placed, info, by_node, 1),
            held=held,
            sizes=resized(self.sizes, info, route, 1),
            states=counted(self.states, route, 1),
            placing=self.placing.used_by(info),
            shapes=slimmed(self.shapes, info, route),
            **self._with_name(info),
        )

    def _with_name(self, info: TableInfo) -> dict[str, Any]:
        if info.dropping is not None:
            return {"freed": self.freed.set(info.table_id, None)}
        schema = (info.catalog, info.schema_name)
        if schema not in self.schemas and schema not in self.leaving:
            raise Corrupt(name=info.full_name, schema=schema)
        return with_name(self.names, self.ordered, info)

    def _unnamed(self, table: CatalogTable) -> "Catalog":
        info = table.info
        nodes, led, held = self.nodes, self.led, self.held
        by_node = held_regions(table.route)
        for node, regions in by_node.items():
            nodes = kept(nodes, node, nodes[node].delete(info.table_id))
            led = added(led, node, -leaders_in(regions))
            held = added(held, node, -len(regions))
        counts: dict[str, Any] = {
            "led_placed": _led_placed(self.led_placed, info, by_node, -1),
            "sizes": resized(self.sizes, info, table.route, -1),
            "states": counted(self.states, table.route, -1),
            "placing": self.placing.unused_by(info),
        }
        return replace(self, nodes=nodes, led=led, held=held, **counts, **self._without_name(info))

    def _without_name(self, info: TableInfo) -> dict[str, Any]:
        if info.dropping is not None:
            return {"freed": self.freed.delete(info.table_id)}
        return without_name(self.names, self.ordered, info)


def _led_placed(
    led: LedPlaced, info: TableInfo, held: Mapping[str, HeldRegions], by: int
) -> LedPlaced:
    """Returns *led* with *by* more of a table: 1 or -1. *held*: its regions by node."""
    placement = named_placement(info.placement_id)
    if placement is None:
        return led
    counts = led.get(placement, Map[str, int]())
    for node, regions in held.items():
        counts = added(counts, node, by * leaders_in(regions))
    return kept(led, placement, counts)


_Apply = Callable[[Catalog, Any, int], Catalog]
_APPLY: Mapping[type, _Apply] = cast(
    "Mapping[type, _Apply]",
    {
        CatalogCreated: namespaces.catalog_created,
        CatalogAltered: namespaces.catalog_altered,
        SchemaCreated: namespaces.schema_created,
        CatalogDropping: namespaces.catalog_dropping,
        CatalogDropped: namespaces.catalog_dropped,
        SchemaDropping: namespaces.schema_dropping,
        SchemaDropped: namespaces.schema_dropped,
        TableCreated: Catalog._table_created,
        TableUndropped: Catalog._table_undropped,
        TableDropped: Catalog._table_dropped,
        TablePurged: Catalog._table_purged,
        TableRenamed: Catalog._table_changed,
        TablesExchanged: Catalog._tables_exchanged,
        TableAltered: Catalog._table_changed,
        RouteChanged: Catalog._route_changed,
        DroppedRouteChanged: Catalog._dropped_route_changed,
        **dict.fromkeys(get_args(PlacingEntry), Catalog._placing_changed),
    },
)
