"""Commands about catalogs and schemas."""

from dataclasses import dataclass
from typing import Any

from keys.commit.entry_writes import MetadataView
from keys.key import Key, Range
from keys.model.catalogs import CatalogInfo, CatalogNameKey, SchemaInfo, SchemaNameKey
from keys.model.log import (
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    Entry,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
)
from keys.model.tables import TableNameKey
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand
from procedures.steps.existing import alike


@dataclass(frozen=True, slots=True)
class CreateCatalogCommand(CatalogCommand):
    """A catalog and its default schema; servers of before made it without one."""

    info: CatalogInfo
    if_not_exists: bool = False
    schema: SchemaInfo | None = None

    def keys(self) -> tuple[Key[Any], ...]:
        name = CatalogNameKey(self.info.name)
        if self.schema is None:
            return (name,)
        return (name, SchemaNameKey(self.info.name, self.schema.name))

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        existing = view.get(CatalogNameKey(self.info.name))
        if alike(self.info, existing, if_not_exists=self.if_not_exists):
            return ()
        made = CatalogCreated(info=self.info)
        return (made,) if self.schema is None else (made, SchemaCreated(info=self.schema))


@dataclass(frozen=True, slots=True)
class CreateSchemaCommand(CatalogCommand):
    info: SchemaInfo
    if_not_exists: bool = False

    def keys(self) -> tuple[Key[Any], ...]:
        return (
            CatalogNameKey(self.info.catalog),
            SchemaNameKey(self.info.catalog, self.info.name),
        )

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = self.info
        if view.get(CatalogNameKey(info.catalog)) is None:
            raise NotFound(what="catalog", name=info.catalog)
        existing = view.get(SchemaNameKey(info.catalog, info.name))
        stands = alike(info, existing, if_not_exists=self.if_not_exists)
        return () if stands else (SchemaCreated(info=info),)


@dataclass(frozen=True, slots=True)
class DropCatalogCommand(CatalogCommand):
    """The drop of an empty catalog; of one with schemas, the first transaction of its cascade."""

    name: str
    catalog_id: int
    hidden_by: str | None = None
    """Id of the procedure that drops what is inside; None: nothing is."""
    schema: str | None = None
    """The only schema inside, which is empty and goes along; None: there is none."""

    def keys(self) -> tuple[Key[Any], ...]:
        name = CatalogNameKey(self.name)
        return (name,) if self.schema is None else (name, SchemaNameKey(self.name, self.schema))

    def empty(self) -> tuple[Range, ...]:
        if self.hidden_by:
            return ()
        if self.schema is not None:
            return (TableNameKey.under(self.name, self.schema),)
        return (SchemaNameKey.under(self.name),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = view.get(CatalogNameKey(self.name))
        if info is None:
            raise NotFound(what="catalog", name=self.name)
        if info.catalog_id != self.catalog_id:
            raise Conflict("schema-conflict", name=self.name)
        if self.schema is not None:
            if view.get(SchemaNameKey(self.name, self.schema)) is None:
                raise NotFound(what="schema", name=f"{self.name}.{self.schema}")
            gone = SchemaDropped(catalog=self.name, name=self.schema)
            return (gone, CatalogDropped(name=self.name))
        if self.hidden_by is None:
            return (CatalogDropped(name=self.name),)
        return (CatalogDropping(info=info.model_copy(update={"dropping": self.hidden_by})),)


@dataclass(frozen=True, slots=True)
class DropSchemaCommand(CatalogCommand):
    """The drop of an empty schema; of one with tables, the first transaction of its cascade."""

    catalog: str
    name: str
    schema_id: int
    hidden_by: str | None = None
    """Id of the procedure that drops what is inside; None: nothing is."""

    @property
    def full_name(self) -> str:
        return f"{self.catalog}.{self.name}"

    def keys(self) -> tuple[Key[Any], ...]:
        return (SchemaNameKey(self.catalog, self.name),)

    def empty(self) -> tuple[Range, ...]:
        return () if self.hidden_by else (TableNameKey.under(self.catalog, self.name),)

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        info = view.get(SchemaNameKey(self.catalog, self.name))
        if info is None:
            raise NotFound(what="schema", name=self.full_name)
        if info.schema_id != self.schema_id:
            raise Conflict("schema-conflict", name=self.full_name)
        if self.hidden_by is None:
            return (SchemaDropped(catalog=self.catalog, name=self.name),)
        return (SchemaDropping(info=info.model_copy(update={"dropping": self.hidden_by})),)
