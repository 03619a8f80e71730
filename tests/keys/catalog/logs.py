"""Logs of any length, with plain dictionaries that say what each must come to."""

from collections import Counter
from collections.abc import Callable
from random import Random

from keys.catalog.catalog import Catalog
from keys.catalog.maps import NOTHING
from keys.model.catalogs import CatalogInfo, CatalogLimits, CatalogSettings, SchemaInfo
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogUpdate,
    DroppedRouteChanged,
    Entry,
    PlacementAltered,
    PlacementCreated,
    PlacementDropped,
    PlacementRenamed,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
    TablesExchanged,
    TablespaceAltered,
    TablespaceCreated,
    TablespaceDropped,
    TablespaceRenamed,
    TableUndropped,
    format_of,
)
from keys.model.placing.placements import DEFAULT_PLACEMENT_ID, PlacementInfo, StorageProfile
from keys.model.placing.tablespaces import TablespaceInfo
from keys.model.tables import CopyRole, RegionCopy, RegionRoute, TableInfo, TableRoute
from metasrv_base.elements.states import ElementState
from tests.procedures.harness.tables import table_info, table_route

DEADLINE_MS = 1_000
NODES = ("dn-1", "dn-2", "dn-3")


MAIN = CatalogInfo(catalog_id=1, name="main", created_at_ms=0)


def first_update() -> CatalogUpdate:
    return update(1, CatalogCreated(info=MAIN), schema_created("public"))


def schema_created(name: str) -> SchemaCreated:
    return SchemaCreated(info=SchemaInfo(schema_id=1, catalog="main", name=name, created_at_ms=0))


def update(version: int, *entries: Entry) -> CatalogUpdate:
    return CatalogUpdate(
        format=format_of(entries), version=version, at_ms=version, procedure=None, entries=entries
    )


class World:
    """Plain dictionaries that change as tables do; each change gives its log entry."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.schemas = {"public"}
        self.main = MAIN
        self.living: dict[int, tuple[TableInfo, TableRoute]] = {}
        self.dropped: dict[int, tuple[TableInfo, TableRoute]] = {}
        self.following = 1024
        self.placements: dict[int, PlacementInfo] = {}
        self.spaces: dict[int, TablespaceInfo] = {}

    def entry(self) -> Entry:
        acts: list[Callable[[], Entry | None]] = [
            self.create,
            self.create,
            self.drop,
            self.undrop,
            self.purge,
            self.rename,
            self.exchange,
            self.alter,
            self.free,
            self.move,
            self.move_dropped,
            self.create_schema,
            self.drop_schema,
            self.alter_catalog,
            self.change_placement,
            self.change_tablespace,
        ]
        while True:
            made = self.random.choice(acts)()
            if made is not None:
                return made

    def taken(self) -> set[tuple[str, str]]:
        infos = (info for info, _ in self.living.values())
        return {(info.schema_name, info.name) for info in infos if info.dropping is None}

    def free_name(self) -> tuple[str, str]:
        wanted = [(s, f"t{n}") for s in sorted(self.schemas) for n in range(20)]
        return self.random.choice([one for one in wanted if one not in self.taken()])

    def a_living(self) -> int | None:
        return self.random.choice(sorted(self.living)) if self.living else None

    def a_named(self) -> int | None:
        """A living table that no batch has dropped."""
        named = sorted(id for id, (info, _) in self.living.items() if info.dropping is None)
        return self.random.choice(named) if named else None

    def free(self) -> Entry | None:
        """A drop of a batch."""
        table = self.a_named()
        if table is None:
            return None
        info, route = self.living[table]
        hidden = {"state": ElementState.WRITE_ONLY, "dropping": "p", "version": info.version + 1}
        info = info.model_copy(update=hidden)
        self.living[table] = info, route
        return TableAltered(info=info)

    def create(self) -> Entry:
        schema, name = self.free_name()
        table, self.following = self.following, self.following + 1
        leaders = tuple(self.random.choice(NODES) for _ in range(self.random.randint(1, 3)))
        info, route = table_info(table, name, len(leaders), schema), table_route(table, leaders)
        info = info.model_copy(update=self.place())
        self.living[table] = info, route
        return TableCreated(info=info, route=route)

    def place(self) -> dict[str, object]:
        """Draws the fields of a table that say where it is kept."""
        placement = self.random.choice([None, *self.placements])
        profile = self.random.choice([None, "fast"]) if placement is None else "fast"
        tablespace = self.random.choice([None, *self.spaces])
        use = {"placement_id": placement, "storage_profile": profile, "tablespace_id": tablespace}
        return {"format": 2 if any(use.values()) else 1, **use}

    def drop(self) -> Entry | None:
        table = self.a_living()
        if table is None:
            return None
        self.dropped[table] = self.living.pop(table)
        return TableDropped(table_id=table, dropped_at_ms=5, dropped_by="p")

    def undrop(self) -> Entry | None:
        if not self.dropped:
            return None
        table = self.random.choice(sorted(self.dropped))
        info, route = self.dropped.pop(table)
        schema, name = self.free_name()
        gone = info.placement_id and info.placement_id not in self.placements
        gone = gone or (info.tablespace_id and info.tablespace_id not in self.spaces)
        place = self.place() if gone else {}
        shown = {"state": ElementState.PUBLIC, "dropping": None}
        update = {"schema_name": schema, "name": name, **shown, **place}
        info = info.model_copy(update=update)
        self.living[table] = info, route
        return TableUndropped(info=info, route=route)

    def purge(self) -> Entry | None:
        if not self.dropped:
            return None
        table = self.random.choice(sorted(self.dropped))
        del self.dropped[table]
        return TablePurged(table_id=table)

    def rename(self) -> Entry | None:
        table = self.a_named()
        if table is None:
            return None
        info, route = self.living[table]
        schema, name = self.free_name()
        info = info.model_copy(update={"schema_name": schema, "name": name})
        self.living[table] = info, route
        return TableRenamed(info=info)

    def exchange(self) -> Entry | None:
        named = sorted(id for id, (info, _) in self.living.items() if info.dropping is None)
        if len(named) < 2:
            return None
        ids = self.random.sample(named, 2)
        infos = [self.living[id][0] for id in ids]
        first, second = (
            mine.model_copy(update={"schema_name": its.schema_name, "name": its.name})
            for mine, its in zip(infos, reversed(infos), strict=True)
        )
        self.living |= {
            one.table_id: (one, self.living[one.table_id][1]) for one in (first, second)
        }
        return TablesExchanged(first=first, second=second)

    def alter(self) -> Entry | None:
        table = self.a_living()
        if table is None:
            return None
        info, route = self.living[table]
        info = info.model_copy(update={"version": info.version + 1})
        self.living[table] = info, route
        return TableAltered(info=info)

    def move(self) -> Entry | None:
        table = self.a_living()
        if table is None:
            return None
        info, route = self.living[table]
        moved, route = self.moved(route)
        self.living[table] = info, route
        return RouteChanged(table_id=table, version=route.version, regions=(moved,))

    def move_dropped(self) -> Entry | None:
        if not self.dropped:
            return None
        table = self.random.choice(sorted(self.dropped))
        info, route = self.dropped[table]
        moved, route = self.moved(route)
        self.dropped[table] = info, route
        return DroppedRouteChanged(table_id=table, version=route.version, regions=(moved,))

    def moved(self, route: TableRoute) -> tuple[RegionRoute, TableRoute]:
        """One region with other copies, and the route with it."""
        region = self.random.choice(route.region_routes)
        leader, *others = self.random.sample(NODES, self.random.randint(1, 3))
        copies = tuple(
            RegionCopy(node=node, root=f"/{node}", role=self.random.choice(tuple(CopyRole)))
            for node in others
        )
        moved = region.model_copy(update={"leader": leader, "copies": copies})
        return moved, route.with_regions((moved,))

    def placed(self) -> list[TableInfo]:
        """Tables that still need their placement and tablespace."""
        return [info for info, _ in self.living.values()]

    def change_placement(self) -> Entry | None:
        name, following = f"p{self.following}", self.following + 1  # 1024 is the default's
        if len(self.placements) < 2:
            self.following += 1
            profiles = (StorageProfile(name="fast", engine="lsm"),)
            info = PlacementInfo(
                placement_id=following, name=name, storage_profiles=profiles, created_at_ms=0
            )
            self.placements[following] = info
            return PlacementCreated(info=info)
        info = self.random.choice(list(self.placements.values()))
        used = {info.placement_id for info in self.placed()}
        act = self.random.choice(["alter", "rename", "drop"])
        if act == "drop":
            if info.placement_id in used:
                return None
            del self.placements[info.placement_id]
            return PlacementDropped(name=info.name)
        update = (
            {"comment": name}
            if act == "alter"
            else {"name": f"p{info.placement_id}-{info.version}"}
        )
        new = info.model_copy(update={"version": info.version + 1, **update})
        self.placements[new.placement_id] = new
        if act == "alter":
            return PlacementAltered(info=new)
        return PlacementRenamed(name=info.name, info=new)

    def change_tablespace(self) -> Entry | None:
        name, following = f"s{self.following}", self.following
        if len(self.spaces) < 2:
            self.following += 1
            info = TablespaceInfo(
                tablespace_id=following, catalog="main", name=name, created_at_ms=0
            )
            self.spaces[following] = info
            return TablespaceCreated(info=info)
        info = self.random.choice(list(self.spaces.values()))
        used = {info.tablespace_id for info in self.placed()}
        act = self.random.choice(["alter", "rename", "drop"])
        if act == "drop":
            if info.tablespace_id in used:
                return None
            del self.spaces[info.tablespace_id]
            return TablespaceDropped(catalog="main", name=info.name)
        update = (
            {"comment": name}
            if act == "alter"
            else {"name": f"s{info.tablespace_id}-{info.version}"}
        )
        new = info.model_copy(update={"version": info.version + 1, **update})
        self.spaces[new.tablespace_id] = new
        if act == "alter":
            return TablespaceAltered(info=new)
        return TablespaceRenamed(name=info.name, info=new)

    def create_schema(self) -> Entry | None:
        free = {"a", "b", "c"} - self.schemas
        if not free:
            return None
        name = min(free)
        self.schemas.add(name)
        return schema_created(name)

    def alter_catalog(self) -> Entry:
        limit = self.random.choice([None, 100, 1_000])
        settings = CatalogSettings(drop_retention_ms=self.random.choice([None, 60_000]))
        self.main = MAIN.as_tenant(settings, CatalogLimits(tables=limit))
        return CatalogAltered(info=self.main)

    def drop_schema(self) -> Entry | None:
        empty = self.schemas - {schema for schema, _ in self.taken()} - {"public"}
        if not empty:
            return None
        name = min(empty)
        self.schemas.remove(name)
        return SchemaDropped(catalog="main", name=name)


def check(catalog: Catalog, world: World) -> None:
    """The catalog says of every table, name, schema and node what the world says."""
    living = {t.info.table_id: t for t in catalog.tables.values() if t.dropped_at_ms is None}
    dropped = {t.info.table_id: t for t in catalog.tables.values() if t.dropped_at_ms is not None}
    assert {name: (t.info, t.route) for name, t in living.items()} == world.living
    assert {name: (t.info, t.route) for name, t in dropped.items()} == world.dropped
    assert {schema for _, schema in catalog.schemas} == world.schemas
    assert catalog.catalogs["main"] == world.main
    regions = sum(len(route.region_routes) for _, route in world.living.values())
    size = catalog.sizes.get("main", NOTHING)
    assert (size.tables, size.regions) == (len(world.living), regions)
    borne = {table: info for table, (info, _) in world.living.items() if info.dropping is None}
    for info in borne.values():
        assert catalog.table("main", info.schema_name, info.name).info == info
    named = {
        (schema, name): table
        for (_, schema), names in catalog.names.items()
        for name, table in names.items()
    }
    assert named == {(info.schema_name, info.name): table for table, info in borne.items()}
    held = {
        node: {t for t, (_, route) in world.living.items() if node in route.numbers_by_node()}
        for node in NODES
    }
    assert {node: {t.info.table_id for t in catalog.on_node(node)} for node in NODES} == held
    placing = catalog.placing
    assert {p.placement_id: p for p in placing.placements.values()} == world.placements
    assert {s.tablespace_id: s for s in placing.tablespaces_of("main").values()} == world.spaces
    infos = [info for info, _ in world.living.values() if info.dropping is None]
    placed = {
        (info.placement_id or DEFAULT_PLACEMENT_ID, info.table_id, info.storage_profile)
        for info in infos
        if info.placement_id or info.storage_profile
    }
    uses = placing.placed.items()
    assert {(one, *use) for one, tables in uses for use in tables.items()} == placed
    grouped = {(info.tablespace_id, info.table_id) for info in infos if info.tablespace_id}
    assert {(one, table) for one, tables in placing.grouped.items() for table in tables} == grouped
    regions_of = [region for _, route in world.living.values() for region in route.region_routes]
    for node in NODES:
        leading = [region for region in regions_of if region.leader == node]
        copied = [copy for region in regions_of for copy in region.copies if copy.node == node]
        assert catalog.led_by(node) == len(leading)
        assert catalog.held_by(node) == len(leading) + len(copied)
    led = Counter(
        (info.placement_id or DEFAULT_PLACEMENT_ID, region.leader)
        for info, route in world.living.values()
        for region in route.region_routes
    )
    for number in (DEFAULT_PLACEMENT_ID, *world.placements, 1):
        counts = {node: count for node, count in catalog.led_in(number).items() if count}
        assert counts == {node: count for (one, node), count in led.items() if one == number}
