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
from metasrv_base.errors import NotFound
from procedures.commands.command import CatalogCommand
from procedures.commands.placing_objects import (
    ChangeCommand,
    DropCommand,
    ObjectOfPlacing,
    RenameCommand,
)
from procedures.steps.existing import alike


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


class OfTablespace(ObjectOfPlacing[TablespaceInfo]):
    __slots__ = ()
    word = "tablespace"
    catalog: str
    tablespace_id: int

    def key(self, name: str) -> TablespaceKey:
        return TablespaceKey(self.catalog, name)

    def full_name(self, name: str) -> str:
        return f"{self.catalog}.{name}"

    def is_same(self, info: TablespaceInfo) -> bool:
        return info.tablespace_id == self.tablespace_id


@dataclass(frozen=True, slots=True)
class TablespaceInUse(OfTablespace):
    """The tablespace of a table."""

    catalog: str
    name: str
    tablespace_id: int


@dataclass(frozen=True, slots=True)
class AlterTablespaceCommand(OfTablespace, ChangeCommand[TablespaceInfo]):
    """Another comment; None: it has none from here on."""

    catalog: str
    name: str
    tablespace_id: int
    comment: str | None

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = self.standing(view)
        if info.comment == self.comment:
            return ()
        update = {"comment": self.comment, "version": info.version + 1}
        return (TablespaceAltered(info=info.model_copy(update=update)),)


@dataclass(frozen=True, slots=True)
class RenameTablespaceCommand(OfTablespace, RenameCommand[TablespaceInfo]):
    catalog: str
    name: str
    tablespace_id: int
    new_name: str

    def renamed(self, info: TablespaceInfo) -> Entry:
        return TablespaceRenamed(name=self.name, info=info)


@dataclass(frozen=True, slots=True)
class DropTablespaceCommand(OfTablespace, DropCommand[TablespaceInfo]):
    catalog: str
    name: str
    tablespace_id: int

    def users(self) -> Range:
        return GroupedTableKey.under(self.tablespace_id)

    def dropped(self) -> Entry:
        return TablespaceDropped(catalog=self.catalog, name=self.name)
