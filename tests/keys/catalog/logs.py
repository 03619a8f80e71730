"""Logs of any length, with plain dictionaries that say what each must come to."""

from collections.abc import Callable
from random import Random

from keys.catalog.catalog import Catalog
from keys.catalog.maps import NOTHING
from keys.model.catalogs import CatalogInfo, CatalogLimits, CatalogSettings, SchemaInfo
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogUpdate,
    Entry,
    RouteChanged,
    SchemaCreated,
    SchemaDropped,
    TableAltered,
    TableCreated,
    TableDropped,
    TablePurged,
    TableRenamed,
    TablesExchanged,
    TableUndropped,
    format_of,
)
from keys.model.tables import TableInfo, TableRoute
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
            self.create_schema,
            self.drop_schema,
            self.alter_catalog,
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
        self.living[table] = info, route
        return TableCreated(info=info, route=route)

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
        shown = {"state": ElementState.PUBLIC, "dropping": None}
        info = info.model_copy(update={"schema_name": schema, "name": name, **shown})
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
        region = self.random.choice(route.region_routes)
        moved = region.model_copy(update={"leader": self.random.choice(NODES)})
        route = route.with_regions((moved,))
        self.living[table] = info, route
        return RouteChanged(table_id=table, version=route.version, regions=(moved,))

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
    led = {
        node: {t for t, (_, route) in world.living.items() if node in route.numbers_by_node()}
        for node in NODES
    }
    assert {node: {t.info.table_id for t in catalog.on_node(node)} for node in NODES} == led
    numbers = [route.numbers_by_node() for _, route in world.living.values()]
    for node in NODES:
        assert catalog.led_by(node) == sum(len(one.get(node, ())) for one in numbers)
