"""Drops of a batch: a name is free at once, and its tables are cleared away later.

A table that is dropped is hidden and bears its name no more (`TableInfo.dropping`). Statements that
have found it end with it; then a child of the batch removes it (docs/decisions/0220).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from keys.commit.entry_writes import MetadataView
from keys.key import Key, Range
from keys.model.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.log import CatalogDropped, Entry, SchemaDropped, TableAltered, TablespaceDropped
from keys.model.placing.placements import PlacementInfo, PlacementKey
from keys.model.placing.tablespaces import TablespaceInfo, TablespaceKey
from keys.model.tables import TableInfoKey, TableNameKey, TableNameRecord
from metasrv_base.concurrency.turns import Turns, slices
from metasrv_base.elements.graphs import TABLE
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand
from procedures.commands.in_order import (
    PLANNED_AT_ONCE,
    ListingView,
    SweepCommand,
    refuse_too_many,
)

NamedKey: TypeAlias = CatalogNameKey | SchemaNameKey | TableNameKey | PlacementKey | TablespaceKey
Stored: TypeAlias = (
    CatalogInfo | SchemaInfo | TableNameRecord | PlacementInfo | TablespaceInfo | None
)


@dataclass(frozen=True, slots=True)
class FreeTableCommand(CatalogCommand):
    name: TableNameKey
    table_id: int
    """The table that the name resolved to."""
    by: str
    """Id of the batch."""

    def keys(self) -> tuple[Key[Any], ...]:
        return (TableInfoKey(self.table_id), self.name)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        record = view.get(self.name)
        if record is None:
            raise NotFound("table-not-found", table=full_name(self.name))
        if record.table_id != self.table_id:
            facts = {"table_id": self.table_id, "now": record.table_id}
            raise Conflict("schema-conflict", name=full_name(self.name), **facts)
        return (_freed(view, self.table_id, self.by),)


@dataclass(frozen=True, slots=True)
class FreeSchemaCommand(SweepCommand):
    """A schema and, with *cascade*, its tables; without, it must be empty."""

    catalog: str
    name: str
    schema_id: int
    cascade: bool
    by: str
    """Id of the batch."""

    def keys(self) -> tuple[Key[Any], ...]:
        return (SchemaNameKey(self.catalog, self.name),)

    def ranges(self) -> tuple[Range, ...]:
        return (TableNameKey.under(self.catalog, self.name),)

    def planning(self, view: ListingView) -> Turns[tuple[Entry, ...]]:
        key = SchemaNameKey(self.catalog, self.name)
        info = view.get(key)
        full = f"{self.catalog}.{self.name}"
        if info is None:
            raise NotFound(what="schema", name=full)
        if info.schema_id != self.schema_id:
            raise Conflict("schema-conflict", name=full)
        tables = yield from view.inside(TableNameKey, self.catalog, self.name)
        if tables and not self.cascade:
            raise Conflict("not-empty", name=full, count=len(tables))
        return tuple((yield from _schema_freed(view, key, tables, self.by)))


@dataclass(frozen=True, slots=True)
class FreeCatalogCommand(SweepCommand):
    """A catalog with its tablespaces and, with *cascade*, its schemas and tables; without, it must
    hold no schema."""

    name: str
    catalog_id: int
    cascade: bool
    by: str
    """Id of the batch."""

    def keys(self) -> tuple[Key[Any], ...]:
        return (CatalogNameKey(self.name),)

    def ranges(self) -> tuple[Range, ...]:
        families = (SchemaNameKey, TableNameKey, TablespaceKey)
        return tuple(family.under(self.name) for family in families)

    def planning(self, view: ListingView) -> Turns[tuple[Entry, ...]]:
        info = view.get(CatalogNameKey(self.name))
        if info is None:
            raise NotFound(what="catalog", name=self.name)
        if info.catalog_id != self.catalog_id:
            raise Conflict("schema-conflict", name=self.name)
        schemas = yield from view.inside(SchemaNameKey, self.name)
        if schemas and not self.cascade:
            raise Conflict("not-empty", name=self.name, count=len(schemas))
        inside = list[Entry]()
        for key in schemas:  # each takes turns, also one without tables
            tables = yield from view.inside(TableNameKey, key.catalog, key.schema)
            refuse_too_many(len(inside) + len(tables))
            inside += yield from _schema_freed(view, key, tables, self.by)
        spaces = yield from view.inside(TablespaceKey, self.name)
        gone = (TablespaceDropped(catalog=self.name, name=key.name) for key in spaces)
        return (*inside, *gone, CatalogDropped(name=self.name))


@dataclass(frozen=True, slots=True)
class UnchangedCommand(CatalogCommand):
    """A command that was found to have nothing to do: what its name means must not change before
    the batch takes effect."""

    key: NamedKey
    id: int | None
    """The object that bears the name; None: none does."""

    def keys(self) -> tuple[Key[Any], ...]:
        return (self.key,)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        """Raises Conflict("schema-conflict")."""
        key: Key[Any] = self.key
        now = _id_of(cast("Stored", view.get(key)))
        if now != self.id:
            raise Conflict("schema-conflict", name=full_name(self.key), now=now)
        return ()


def _id_of(stored: Stored) -> int | None:
    match stored:
        case CatalogInfo():
            return stored.catalog_id
        case SchemaInfo():
            return stored.schema_id
        case TableNameRecord():
            return stored.table_id
        case PlacementInfo():
            return stored.placement_id
        case TablespaceInfo():
            return stored.tablespace_id
        case None:
            return None


def full_name(key: NamedKey) -> str:
    return ".".join(str(key).split("/")[1:])


def _schema_freed(
    view: ListingView, key: SchemaNameKey, tables: Sequence[TableNameKey], by: str
) -> Turns[list[Entry]]:
    refuse_too_many(len(tables))
    entries = list[Entry]()
    for some in slices(tables, PLANNED_AT_ONCE):
        for table in some:
            record = view.get(table)
            assert record is not None
            entries.append(_freed(view, record.table_id, by))
        yield
    return [*entries, SchemaDropped(catalog=key.catalog, name=key.schema)]


def _freed(view: MetadataView, table_id: int, by: str) -> TableAltered:
    info = view.get(TableInfoKey(table_id))
    if info is None:
        raise NotFound("table-not-found", table_id=table_id)
    state = TABLE.after(info.state, TABLE.drop)
    update = {"state": state, "version": info.version + 1, "dropping": by}
    return TableAltered(info=info.model_copy(update=update))
