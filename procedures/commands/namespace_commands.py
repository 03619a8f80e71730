"""Commands about catalogs and schemas."""

from collections.abc import Iterator, Mapping
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
    TablespaceCreated,
    TablespaceDropped,
)
from keys.model.placing.tablespaces import (
    DEFAULT_TABLESPACE,
    TablespaceKey,
    default_tablespace,
)
from keys.model.tables import TableNameKey
from metasrv_base.errors import Conflict, NotFound
from procedures.commands.command import CatalogCommand
from procedures.steps.existing import alike


@dataclass(frozen=True, slots=True)
class CreateCatalogCommand(CatalogCommand):
    """A catalog with its tablespace `default` and its default schema; servers of before made it
    without the schema."""

    info: CatalogInfo
    if_not_exists: bool = False
    schema: SchemaInfo | None = None

    def keys(self) -> tuple[Key[Any], ...]:
        name = self.info.name
        keys: tuple[Key[Any], ...] = (
            CatalogNameKey(name),
            TablespaceKey(name, DEFAULT_TABLESPACE),
        )
        return keys if self.schema is None else (*keys, SchemaNameKey(name, self.schema.name))

    def plan(self, view: MetadataView) -> tuple[Entry, ...]:
        existing = view.get(CatalogNameKey(self.info.name))
        if alike(self.info, existing, if_not_exists=self.if_not_exists):
            return ()
        made = (
            CatalogCreated(info=self.info),
            TablespaceCreated(info=default_tablespace(self.info)),
        )
        return made if self.schema is None else (*made, SchemaCreated(info=self.schema))


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
    tablespaces: tuple[str, ...] = ()
    """Names of all that it has, as of the revision *known_at*; they go with it. Not needed with
    *hidden_by*."""
    known_at: int = 0

    def keys(self) -> tuple[Key[Any], ...]:
        spaces = (TablespaceKey(self.name, space) for space in self.tablespaces)
        schemas = () if self.schema is None else (SchemaNameKey(self.name, self.schema),)
        return (CatalogNameKey(self.name), *spaces, *schemas)

    def unchanged(self) -> Mapping[Range, int]:
        return {} if self.hidden_by else {TablespaceKey.under(self.name): self.known_at}

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
        if self.hidden_by is not None:
            hidden = info.model_copy(update={"dropping": self.hidden_by})
            return (CatalogDropping(info=hidden),)
        return (*self._inside(view), CatalogDropped(name=self.name))

    def _inside(self, view: MetadataView) -> Iterator[Entry]:
        for space in self.tablespaces:
            if view.get(TablespaceKey(self.name, space)) is not None:
                yield TablespaceDropped(catalog=self.name, name=space)
        if self.schema is not None:
            if view.get(SchemaNameKey(self.name, self.schema)) is None:
                raise NotFound(what="schema", name=f"{self.name}.{self.schema}")
            yield SchemaDropped(catalog=self.name, name=self.schema)


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
