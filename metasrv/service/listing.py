"""The lists of the catalog: catalogs, schemas and tables, each page at one version."""

from dataclasses import dataclass
from typing import TypeVar

from base.wire.tables import CatalogList, SchemaList, TableList
from keys.catalog import Table
from keys.catalogs import CatalogInfo, SchemaInfo
from metasrv.service.pages import ListName, Page, Token, page_of, seal
from metasrv.service.reading import Freshness, View, page_view
from metasrv.service.shapes import catalog_body, schema_body, summary
from metasrv.service.state import ServerState
from metasrv.service.wishes import (
    SchemaName,
    must_be_identifiers,
    must_have_catalog,
    schema_named,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One page of a list."""

    path: str
    size: int
    token: str | None
    freshness: Freshness


async def catalogs(state: ServerState, wanted: Wanted) -> tuple[CatalogList, View]:
    name = await list_name(state, wanted)
    found, token = await page_view(state, wanted.freshness, name, wanted.token)
    known = found.catalog.catalogs
    items = [known[key] for key in sorted(known)]
    page = page_of(items, _by_catalog, token.after if token else None, wanted.size)
    version = found.catalog.version
    body = CatalogList(
        catalogs=tuple(catalog_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=next_token(name, version, page),
    )
    return body, found


async def schemas(state: ServerState, catalog: str, wanted: Wanted) -> tuple[SchemaList, View]:
    must_be_identifiers(catalog)
    name = await list_name(state, wanted)
    found, token = await page_view(state, wanted.freshness, name, wanted.token)
    must_have_catalog(found.catalog, catalog)
    known = found.catalog.schemas
    items = [known[key] for key in sorted(known) if key[0] == catalog]
    page = page_of(items, _by_schema, token.after if token else None, wanted.size)
    version = found.catalog.version
    body = SchemaList(
        schemas=tuple(schema_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=next_token(name, version, page),
    )
    return body, found


async def tables(
    state: ServerState, schema: SchemaName, wanted: Wanted, prefix: str, include_dropped: bool
) -> tuple[TableList, View]:
    name = await list_name(state, wanted, prefix, include_dropped)
    found, token = await page_view(state, wanted.freshness, name, wanted.token)
    catalog = found.catalog
    schema_named(catalog, schema)
    items = list(catalog.in_schema(schema.catalog, schema.schema))
    if include_dropped:
        items += catalog.dropped(schema.catalog, schema.schema)
        items.sort(key=_by_table)
    if prefix:
        items = [table for table in items if table.info.name.startswith(prefix)]
    page = page_of(items, _by_table, token.after if token else None, wanted.size)
    body = TableList(
        tables=tuple(summary(table) for table in page.items),
        catalog_version=catalog.version,
        next_page_token=next_token(name, catalog.version, page),
    )
    return body, found


async def list_name(
    state: ServerState, wanted: Wanted, *filters: str | int | bool | None
) -> ListName:
    return ListName(await state.cluster() or "", wanted.path, filters)


def next_token(name: ListName, version: int, page: Page[T]) -> str | None:
    return None if page.after is None else seal(name, Token(version, page.after))


def _by_catalog(info: CatalogInfo) -> tuple[str]:
    return (info.name,)


def _by_schema(info: SchemaInfo) -> tuple[str]:
    return (info.name,)


def _by_table(table: Table) -> tuple[str, int]:
    """One name may be borne by a living table and by many dropped ones."""
    return (table.info.name, table.info.table_id)
