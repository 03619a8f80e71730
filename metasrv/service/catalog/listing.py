"""The lists of the catalog: catalogs, schemas and tables, each page at one version."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import merge, nsmallest
from itertools import dropwhile, islice, takewhile
from typing import Generic, Protocol, TypeVar

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from keys.model.catalogs import SchemaInfo
from metasrv.service.bodies.shapes import catalog_body, schema_body, summary
from metasrv.service.catalog.reading import CatalogView, Freshness, page_view
from metasrv.service.pages import ListName, ListPage, PageToken, page_of, seal
from metasrv.service.requests.ddl_request import (
    FullSchemaName,
    must_be_identifiers,
    must_have_catalog,
    schema_named,
)
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import Turns, by_turns, slices
from metasrv_base.wire.api.tables import CatalogList, SchemaList, TableList, TableSummary

T = TypeVar("T")
TableRow = tuple[tuple[str, int], TableSummary]
"""Position of a table in a list, and what the list says of it."""
DECODED_IN_TURN = 128
"""Tables of a page that one turn decodes: some 100 us each, where the page may have 1,000."""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """One page of a list."""

    path: str
    size: int
    token: str | None
    freshness: Freshness


class Named(Protocol):
    @property
    def name(self) -> str: ...


Object = TypeVar("Object", bound=Named)


@dataclass(frozen=True, slots=True)
class NamesPage(Generic[Object]):
    """A page of objects that are listed by name, as of one version."""

    items: Sequence[Object]
    next_page_token: str | None
    view: CatalogView


async def names_page(
    state: ServerState, request: ListRequest, objects: Callable[[Catalog], Iterable[Object]]
) -> NamesPage[Object]:
    """Returns a page of objects by name. *objects* returns all of the list, in any order; it may
    raise NotFound for what holds them."""
    name = await list_name(state, request)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    items = sorted(objects(catalog_view.catalog), key=_by_name)
    page = page_of(items, _by_name, token.after if token else None, request.size)
    return NamesPage(page.items, next_token(name, catalog_view.catalog.version, page), catalog_view)


async def catalogs(state: ServerState, request: ListRequest) -> tuple[CatalogList, CatalogView]:
    page = await names_page(state, request, lambda catalog: catalog.catalogs.values())
    catalog = page.view.catalog
    body = CatalogList(
        catalogs=tuple(catalog_body(info, catalog) for info in page.items),
        catalog_version=catalog.version,
        next_page_token=page.next_page_token,
    )
    return body, page.view


async def schemas(
    state: ServerState, catalog: str, request: ListRequest
) -> tuple[SchemaList, CatalogView]:
    must_be_identifiers(catalog)

    def schemas_of(of: Catalog) -> Iterable[SchemaInfo]:
        must_have_catalog(of, catalog)
        return (info for (within, _), info in of.schemas.items() if within == catalog)

    page = await names_page(state, request, schemas_of)
    version = page.view.catalog.version
    body = SchemaList(
        schemas=tuple(schema_body(info, version) for info in page.items),
        catalog_version=version,
        next_page_token=page.next_page_token,
    )
    return body, page.view


async def tables(
    state: ServerState,
    schema: FullSchemaName,
    request: ListRequest,
    prefix: str,
    include_dropped: bool,
) -> tuple[TableList, CatalogView]:
    name = await list_name(state, request, prefix, include_dropped)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    catalog = catalog_view.catalog
    schema_named(catalog, schema)
    after = token.after if token else None
    low = max(prefix, str(after[0])) if after else prefix
    there = catalog.in_schema(schema.catalog, schema.schema, low)
    if include_dropped:
        dropped = await by_turns(_dropped_from(catalog, schema, low, after, request.size + 1))
        there = merge(there, dropped, key=_by_table)
    named = takewhile(lambda table: table.info.name.startswith(prefix), there)
    above = dropwhile(lambda table: after is not None and _by_table(table) <= after, named)
    rows = await by_turns(_rows(islice(above, request.size + 1)))
    page = page_of(rows, _by_row, None, request.size)
    body = TableList(
        tables=tuple(row for _, row in page.items),
        catalog_version=catalog.version,
        next_page_token=next_token(name, catalog.version, page),
    )
    return body, catalog_view


def _rows(tables: Iterable[CatalogTable]) -> Turns[list[TableRow]]:
    """Returns the rows of a page of *tables*, which may be decoded as they come."""
    rows: list[TableRow] = []
    for some in slices(tables, DECODED_IN_TURN):
        rows += ((_by_table(table), summary(table)) for table in some)
        yield
    return rows


def _dropped_from(
    catalog: Catalog,
    schema: FullSchemaName,
    low: str,
    after: tuple[str | int, ...] | None,
    limit: int,
) -> Turns[list[CatalogTable]]:
    """The first *limit* dropped tables from the name *low* on and above *after*, in order: a page
    looks at all that were dropped in its schema, and holds no more than it shows."""
    first: list[CatalogTable] = []
    for some in slices(catalog.gone.get((schema.catalog, schema.schema), ())):
        tables = (catalog.tables[table_id] for table_id in some)
        there = (
            table
            for table in tables
            if table.info.name >= low and (after is None or _by_table(table) > after)
        )
        first = nsmallest(limit, [*first, *there], key=_by_table)
        yield
    return first


async def list_name(
    state: ServerState, request: ListRequest, *filters: str | int | bool | None
) -> ListName:
    return ListName(await state.cluster() or "", request.path, filters)


def next_token(name: ListName, version: int, page: ListPage[T]) -> str | None:
    return None if page.after is None else seal(name, PageToken(version, page.after))


def _by_name(info: Named) -> tuple[str]:
    return (info.name,)


def _by_row(row: TableRow) -> tuple[str, int]:
    return row[0]


def _by_table(table: CatalogTable) -> tuple[str, int]:
    """One name may be borne by a living table and by many dropped ones."""
    return (table.info.name, table.info.table_id)
