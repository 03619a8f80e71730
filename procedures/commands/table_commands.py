"""Commands that make and name tables: create, rename and exchange, undrop."""

from dataclasses import dataclass, field
from typing import Any

from keys.commit.entry_writes import MetadataView
from keys.key import Key
from keys.model.catalogs import SchemaInfo, SchemaNameKey
from keys.model.log import Entry, TableCreated, TableRenamed, TablesExchanged, TableUndropped
from keys.model.records import ClientRequirements
from keys.model.removed import RemovedTableInfoKey, RemovedTableNameKey, RemovedTableRouteKey
from keys.model.tables import (
    RegionState,
    TableInfo,
    TableInfoKey,
    TableNameKey,
    TableRoute,
    TableRouteKey,
)
from metasrv_base.elements.states import ElementState
from metasrv_base.errors import Conflict, Corrupt, NotFound
from metasrv_base.values.frozen import frozen
from procedures.commands.command import CatalogCommand
from procedures.commands.table_placing import DEFAULTS, TablePlacingNames
from procedures.steps.existing import alike, must_be_free
from procedures.steps.requirements import require_same_table, require_version


@frozen
class CreateTableCommand(CatalogCommand):
    info: TableInfo
    route: TableRoute
    if_not_exists: bool = False
    placing: TablePlacingNames = DEFAULTS
    """The placement and the tablespace by which the table was judged."""
    name_key: TableNameKey = field(init=False)
    _schema: SchemaNameKey = field(init=False)
    _ids: tuple[Key[Any], ...] = field(init=False)
    """Keys of which a table has one, living or dropped."""

    def __post_init__(self) -> None:
        info, table_id = self.info, self.info.table_id
        ids = TableInfoKey(table_id), TableRouteKey(table_id), RemovedTableInfoKey(table_id)
        name = TableNameKey(info.catalog, info.schema_name, info.name)
        object.__setattr__(self, "name_key", name)
        object.__setattr__(self, "_schema", SchemaNameKey(info.catalog, info.schema_name))
        object.__setattr__(self, "_ids", ids)

    def keys(self) -> tuple[Key[Any], ...]:
        placing = self.placing.keys(self.info.catalog)
        return (*self._ids, self.name_key, self._schema, *placing)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        """Plans the create. With *if_not_exists*, *view* also has the TableInfo of the table that
        bears the name."""
        info = self.info
        if view.get(self._schema) is None:
            raise NotFound(what="schema", name=f"{info.catalog}.{info.schema_name}")
        bearer = view.get(self.name_key)
        if bearer is None:
            self._id_must_be_free(view)
            self.placing.must_hold(info, view)
            return (TableCreated(info=info, route=self.route),)
        if not self.if_not_exists:
            must_be_free("table", info.full_name, bearer)
        existing = view.get(TableInfoKey(bearer.table_id))
        if existing is None:
            raise NotFound("table-not-found", table=info.full_name)
        alike(info, existing, if_not_exists=True)
        return ()

    def _id_must_be_free(self, view: MetadataView) -> None:
        """Raises Corrupt: ids are given once, so the sequence of ids, or these keys, are wrong.
        That of a dropped table is not free: its regions are on their nodes still."""
        if any(view.get(key) is not None for key in self._ids):
            raise Corrupt(table_id=self.info.table_id, reason="a new table has the id of another")


@dataclass(frozen=True, slots=True)
class RenameTableCommand(CatalogCommand):
    """Another name for a table; or two tables exchange their names."""

    old: TableNameKey
    new: TableNameKey
    table_id: int
    client: ClientRequirements
    other_id: int | None = None
    """The table that bears the new name, and takes the old one; None: nobody may bear it."""

    def keys(self) -> tuple[Key[Any], ...]:
        other = TableInfoKey(self.other_id or self.table_id)
        schema = SchemaNameKey(self.new.catalog, self.new.schema)
        return (TableInfoKey(self.table_id), self.old, self.new, schema, other)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        require_same_table(self.client, self.old, view.get(self.old))
        info = view.get(TableInfoKey(self.table_id))
        if info is None:
            raise NotFound("table-not-found", table_id=self.table_id)
        require_version(self.client, info)
        if view.get(SchemaNameKey(self.new.catalog, self.new.schema)) is None:
            raise NotFound(what="schema", name=f"{self.new.catalog}.{self.new.schema}")
        named = _named(info, self.new)
        if self.other_id is None:
            must_be_free("table", _full(self.new), view.get(self.new))
            return (TableRenamed(info=named),)
        other = _named(_bearer(self.other_id, self.new, view), self.old)
        return (TablesExchanged(first=named, second=other),)


def _bearer(table_id: int, name: TableNameKey, view: MetadataView) -> TableInfo:
    """The table that still bears that name."""
    record, info = view.get(name), view.get(TableInfoKey(table_id))
    if record is None:
        raise NotFound("table-not-found", table=_full(name))
    if record.table_id != table_id or info is None:
        raise Conflict("schema-conflict", name=_full(name), table_id=table_id, now=record.table_id)
    return info


def _named(info: TableInfo, name: TableNameKey) -> TableInfo:
    update = {"schema_name": name.schema, "name": name.table, "version": info.version + 1}
    return info.model_copy(update=update)


def _full(name: TableNameKey) -> str:
    return f"{name.catalog}.{name.schema}.{name.table}"


@dataclass(frozen=True, slots=True)
class UndropTableCommand(CatalogCommand):
    """A dropped table comes back, every region one epoch higher."""

    removed: RemovedTableNameKey
    name: TableNameKey
    """The name that it will bear, in the schema that it was dropped from."""
    schema_id: int | None = None
    """The schema that the name resolved to at submit; None: not known."""
    placing: TablePlacingNames = DEFAULTS
    """The placement and the tablespace of the table, by their names at submit."""

    def keys(self) -> tuple[Key[Any], ...]:
        table_id = self.removed.table_id
        return (
            RemovedTableInfoKey(table_id),
            RemovedTableRouteKey(table_id),
            self.removed,
            self.name,
            SchemaNameKey(self.name.catalog, self.name.schema),
            TableInfoKey(table_id),
            TableRouteKey(table_id),
            *self.placing.keys(self.name.catalog),
        )

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        table_id = self.removed.table_id
        removed = view.get(RemovedTableInfoKey(table_id))
        removed_route = view.get(RemovedTableRouteKey(table_id))
        if removed is None or removed_route is None:
            raise NotFound("table-not-found", table_id=table_id)
        self._require_schema(view.get(SchemaNameKey(self.name.catalog, self.name.schema)))
        must_be_free("table", _full(self.name), view.get(self.name))
        info = removed.info
        self.placing.must_hold(info, view)
        back = {"name": self.name.table, "version": info.version + 1, "state": ElementState.PUBLIC}
        route = _reopening(removed_route.route)
        shown = info.model_copy(update={**back, "dropping": None})
        return (TableUndropped(info=shown, route=route),)

    def _require_schema(self, schema: SchemaInfo | None) -> None:
        """The name still means the schema that it resolved to at submit (docs/protocols.md P1)."""
        name = f"{self.name.catalog}.{self.name.schema}"
        if schema is None:
            raise NotFound(what="schema", name=name)
        if self.schema_id not in (None, schema.schema_id):
            facts = {"table_id": self.removed.table_id, "now": schema.schema_id}
            raise Conflict("schema-conflict", name=name, **facts)


def _reopening(route: TableRoute) -> TableRoute:
    """Every epoch rises, so that nothing from before the drop can still be taken for the leader."""
    return route.with_regions(
        tuple(
            region.model_copy(update={"epoch": region.epoch + 1, "state": RegionState.OPENING})
            for region in route.region_routes
        )
    )
