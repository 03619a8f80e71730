"""Entries about catalogs and schemas, applied: one function each. They raise Corrupt for an entry
that cannot follow."""

from dataclasses import replace
from typing import Any, ClassVar, Protocol, TypeVar

from immutables import Map

from keys.catalog.maps import without
from keys.catalog.parts.placing import Placing
from keys.model.catalogs import CatalogInfo, SchemaInfo
from keys.model.log import (
    CatalogAltered,
    CatalogCreated,
    CatalogDropped,
    CatalogDropping,
    SchemaCreated,
    SchemaDropped,
    SchemaDropping,
)
from metasrv_base.errors import Corrupt

SchemaName = tuple[str, str]


class Namespaces(Protocol):
    """The part of `keys.catalog.catalog.Catalog` that these functions look at; a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def revision(self) -> int: ...
    @property
    def catalogs(self) -> Map[str, CatalogInfo]: ...
    @property
    def leaving_catalogs(self) -> Map[str, CatalogInfo]: ...
    @property
    def schemas(self) -> Map[SchemaName, SchemaInfo]: ...
    @property
    def schema_revisions(self) -> Map[SchemaName, int]: ...
    @property
    def leaving(self) -> Map[SchemaName, SchemaInfo]: ...
    @property
    def names(self) -> Map[SchemaName, Map[str, int]]: ...
    @property
    def placing(self) -> Placing: ...


C = TypeVar("C", bound=Namespaces)


def catalog_created(catalog: C, entry: CatalogCreated, version: int) -> C:
    name = entry.info.name
    if name in catalog.catalogs or name in catalog.leaving_catalogs:
        raise Corrupt(entry=entry.op, catalog=name)
    return replace(catalog, catalogs=catalog.catalogs.set(name, entry.info))


def catalog_altered(catalog: C, entry: CatalogAltered, version: int) -> C:
    name = entry.info.name
    if name not in catalog.catalogs:
        raise Corrupt(entry=entry.op, catalog=name)
    return replace(catalog, catalogs=catalog.catalogs.set(name, entry.info))


def catalog_dropping(catalog: C, entry: CatalogDropping, version: int) -> C:
    name = entry.info.name
    if name not in catalog.catalogs:
        raise Corrupt(entry=entry.op, catalog=name)
    leaving = catalog.leaving_catalogs.set(name, entry.info)
    return replace(catalog, catalogs=catalog.catalogs.delete(name), leaving_catalogs=leaving)


def catalog_dropped(catalog: C, entry: CatalogDropped, version: int) -> C:
    held = [name for name in (*catalog.schemas, *catalog.leaving) if name[0] == entry.name]
    held += [(entry.name, name) for name in catalog.placing.tablespaces_of(entry.name)]
    if held or (entry.name not in catalog.catalogs and entry.name not in catalog.leaving_catalogs):
        raise Corrupt(entry=entry.op, catalog=entry.name, holds=held)
    return replace(
        catalog,
        catalogs=without(catalog.catalogs, entry.name),
        leaving_catalogs=without(catalog.leaving_catalogs, entry.name),
    )


def schema_created(catalog: C, entry: SchemaCreated, version: int) -> C:
    name = (entry.info.catalog, entry.info.name)
    is_taken = name in catalog.schemas or name in catalog.leaving
    if is_taken or entry.info.catalog not in catalog.catalogs:
        raise Corrupt(entry=entry.op, schema=name)
    return replace(
        catalog,
        schemas=catalog.schemas.set(name, entry.info),
        schema_revisions=catalog.schema_revisions.set(name, catalog.revision),
    )


def schema_dropping(catalog: C, entry: SchemaDropping, version: int) -> C:
    name = (entry.info.catalog, entry.info.name)
    if name not in catalog.schemas:
        raise Corrupt(entry=entry.op, schema=name)
    leaving = catalog.leaving.set(name, entry.info)
    return replace(
        catalog,
        schemas=catalog.schemas.delete(name),
        schema_revisions=catalog.schema_revisions.delete(name),
        leaving=leaving,
    )


def schema_dropped(catalog: C, entry: SchemaDropped, version: int) -> C:
    name = (entry.catalog, entry.name)
    exists = name in catalog.schemas or name in catalog.leaving
    if not exists or catalog.names.get(name):
        raise Corrupt(entry=entry.op, schema=name)
    return replace(
        catalog,
        schemas=without(catalog.schemas, name),
        schema_revisions=without(catalog.schema_revisions, name),
        leaving=without(catalog.leaving, name),
    )
