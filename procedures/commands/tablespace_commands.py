"""Commands about the tablespaces of a catalog."""

from dataclasses import dataclass
from typing import Any

from keys.commit.entry_writes import MetadataView
from keys.key import Key, Range
from keys.model.catalogs import CatalogNameKey
from keys.model.log import (
    Entry,
    TablespaceAltered,
    TablespaceCreated,
    TablespaceDropped,
    TablespaceRenamed,
)
from keys.model.placing.tablespaces import GroupedTableKey, TablespaceInfo, TablespaceKey
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand
from procedures.commands.placement_commands import must_not_be_default
from procedures.steps.existing import alike, must_be_free


@dataclass(frozen=True, slots=True)
class CreateTablespaceCommand(CatalogCommand):
    info: TablespaceInfo
    if_not_exists: bool = False

    def keys(self) -> tuple[Key[Any], ...]:
        info = self.info
        return (CatalogNameKey(info.catalog), TablespaceKey(info.catalog, info.name))

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = self.info
        catalog = view.get(CatalogNameKey(info.catalog))
        if catalog is None or catalog.dropping is not None:
            raise NotFound(what="catalog", name=info.catalog)
        existing = view.get(TablespaceKey(info.catalog, info.name))
        stands = alike(info, existing, if_not_exists=self.if_not_exists)
        return () if stands else (TablespaceCreated(info=info),)


@dataclass(frozen=True, slots=True)
class AlterTablespaceCommand(CatalogCommand):
    """Another comment; None: it has none from here on."""

    catalog: str
    name: str
    tablespace_id: int
    comment: str | None

    def keys(self) -> tuple[Key[Any], ...]:
        return (TablespaceKey(self.catalog, self.name),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = the_tablespace(view, self.catalog, self.name, self.tablespace_id)
        if info.comment == self.comment:
            return ()
        update = {"comment": self.comment, "version": info.version + 1}
        return (TablespaceAltered(info=info.model_copy(update=update)),)


@dataclass(frozen=True, slots=True)
class RenameTablespaceCommand(CatalogCommand):
    catalog: str
    name: str
    tablespace_id: int
    new_name: str

    def keys(self) -> tuple[Key[Any], ...]:
        return (
            TablespaceKey(self.catalog, self.name),
            TablespaceKey(self.catalog, self.new_name),
        )

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = the_tablespace(view, self.catalog, self.name, self.tablespace_id)
        must_not_be_default("tablespace", f"{self.catalog}.{self.name}")
        taken = view.get(TablespaceKey(self.catalog, self.new_name))
        must_be_free("tablespace", f"{self.catalog}.{self.new_name}", taken)
        new = info.model_copy(update={"name": self.new_name, "version": info.version + 1})
        return (TablespaceRenamed(name=self.name, info=new),)


@dataclass(frozen=True, slots=True)
class DropTablespaceCommand(CatalogCommand):
    """No living table is in it: that is a compare."""

    catalog: str
    name: str
    tablespace_id: int

    def keys(self) -> tuple[Key[Any], ...]:
        return (TablespaceKey(self.catalog, self.name),)

    def empty(self) -> tuple[Range, ...]:
        return (GroupedTableKey.under(self.tablespace_id),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        the_tablespace(view, self.catalog, self.name, self.tablespace_id)
        must_not_be_default("tablespace", f"{self.catalog}.{self.name}")
        return (TablespaceDropped(catalog=self.catalog, name=self.name),)


def the_tablespace(
    view: MetadataView, catalog: str, name: str, tablespace_id: int
) -> TablespaceInfo:
    """Raises NotFound; Conflict where the name means another tablespace by now."""
    info, full_name = view.get(TablespaceKey(catalog, name)), f"{catalog}.{name}"
    if info is None:
        raise NotFound(what="tablespace", name=full_name)
    if info.tablespace_id != tablespace_id:
        raise Conflict("schema-conflict", name=full_name)
    return info
