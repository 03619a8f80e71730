"""Reads of the catalog's history: its changes page by page, one version, and two versions of a
table."""

from functools import cache

from pydantic import TypeAdapter

from keys.catalog.descriptor import TableDescriptor
from keys.catalog.schema_versions import SchemaVersion
from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.shapes import column_body, time_of
from metasrv.service.catalog.change_text import altered, text_of
from metasrv.service.catalog.listing import ListRequest, list_name, next_token
from metasrv.service.catalog.reading import CatalogView, Freshness, page_view, view
from metasrv.service.catalog.table_diff import difference
from metasrv.service.history.changes import Filters, Group, change_of
from metasrv.service.history.history_page import HistoryPage, PageRequest
from metasrv.service.nearby import hint
from metasrv.service.pages import ListPage
from metasrv.service.past.version_reader import VersionReader
from metasrv.service.requests.ddl_request import FullTableName, table_named
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound, Refused
from metasrv_base.wire.api.versions import (
    CatalogChange,
    CatalogOperation,
    SchemaVersionBody,
    TableAt,
    TableDiff,
    TableVersionList,
    VersionList,
)


@cache
def operations() -> frozenset[str]:
    """The names of all operations."""
    document = TypeAdapter[object](CatalogOperation).json_schema()
    return frozenset(document["discriminator"]["mapping"])


async def versions(
    state: ServerState, request: ListRequest, filters: Filters, transitions: bool
) -> tuple[VersionList, CatalogView]:
    """A page of the changes in memory and in the log: it may have fewer than asked for, or none,
    and a token.

    Raises Refused("invalid-request") for an operation that there is not, with what comes close;
    Refused("history-expired") where the log was cut above the next change.
    """
    if filters.operation is not None and filters.operation not in operations():
        close = hint(filters.operation, operations())
        raise Refused("invalid-request", expected="an operation", found=filters.operation, **close)
    words = (filters.operation, filters.catalog, filters.schema, filters.table_id, filters.by)
    name = await list_name(state, request, *words, transitions)
    catalog_view, token = await page_view(state, request.freshness, name, request.token)
    newest = catalog_view.catalog.version
    below = int(token.after[0]) if token else newest + 1
    reader = VersionReader(state)
    oldest = reader.floor
    if below <= oldest:
        raise Refused("history-expired", version=below - 1, oldest=oldest)
    page = HistoryPage(PageRequest(newest, below, request.size, filters, transitions), reader)
    await page.read()
    shown = tuple(page.changes)
    after = None if page.after is None else (page.after,)
    body = VersionList(
        changes=shown,
        catalog_version=newest,
        oldest_version=oldest,
        next_page_token=next_token(name, newest, ListPage(shown, after)),
    )
    return body, catalog_view


async def version(
    state: ServerState, number: int, freshness: Freshness
) -> tuple[CatalogChange, CatalogView]:
    """Raises NotFound for a version that is not yet, Refused("history-expired") for one that the
    log no longer holds."""
    catalog_view = await view(state, freshness)
    newest = catalog_view.catalog.version
    if not 0 < number <= newest:
        raise NotFound("not-found", what="version", name=str(number))
    reader = VersionReader(state)
    update = await reader.update(number)
    after, before = await reader.at(number, number), await reader.at(number - 1, number)
    group = Group(update.procedure, [update])
    change = change_of(group, before, after, Filters(), transitions=True)
    assert change is not None, "its catalogs are at hand"
    return change, catalog_view


async def table_versions(
    state: ServerState, name: FullTableName, request: ListRequest, transitions: bool
) -> tuple[TableVersionList, CatalogView]:
    """The changes of the table that bears the name, under whatever name they were made."""
    catalog_view = await view(state, request.freshness)
    catalog = catalog_view.catalog
    table = TableDescriptor.of(catalog, table_named(catalog, name))
    filters = Filters(table_id=table.table_id)
    page, page_catalog = await versions(state, request, filters, transitions)
    sets = reversed(table.schema_versions) if request.token is None else ()
    body = TableVersionList(
        **dict(page),
        table_id=table.table_id,
        schema_id=table.schema_id,
        schema_versions=tuple(map(_schema_version, sets)),
    )
    return body, page_catalog


def _schema_version(columns_set: SchemaVersion) -> SchemaVersionBody:
    return SchemaVersionBody(
        schema_version=columns_set.schema_version,
        catalog_version=columns_set.catalog_version,
        committed_at=time_of(columns_set.at_ms),
        columns=tuple(map(column_body, columns_set.columns)),
    )


async def table_diff(
    state: ServerState, name: FullTableName, before: int, after: int | None
) -> tuple[TableDiff, CatalogView]:
    """Compares a table at two versions of the catalog (None: now). The table is the one with the
    name at the later of the two."""
    later = max(before, after) if after is not None else None
    catalog_view = await view(state, _at(later))
    last = table_named(catalog_view.catalog, name)
    newest = catalog_view.catalog.version
    table_id = last.info.table_id
    to = newest if after is None else after
    old, new = [(await view(state, _at(number))).catalog for number in (before, to)]
    tables = [catalog.tables.get(table_id) for catalog in (old, new)]
    for catalog, table in zip((old, new), tables, strict=True):
        if table is None or table.dropped_at_ms is not None:
            raise NotFound("table-not-found", name=f"{name.full} at version {catalog.version}")
    was, now = tables
    assert was is not None
    assert now is not None
    different = difference(was.info, now.info)
    words = [altered(operation) for operation in different.alter]
    words += [text_of(now.info.full_name, operation) for operation in different.indexes]
    if was.info.full_name != now.info.full_name:
        words.insert(0, f"rename {was.info.full_name} to {now.info.full_name}")
    body = TableDiff(
        table_id=table_id,
        before=_table_at(was, old.version, old.at_ms),
        after=_table_at(now, new.version, new.at_ms),
        operations=different.alter,
        indexes=different.indexes,
        text=tuple(words),
    )
    return body, catalog_view


def _at(version: int | None) -> Freshness:
    return Freshness() if version is None else Freshness(as_of=f"version:{version}")


def _table_at(table: CatalogTable, version: int, at_ms: int) -> TableAt:
    info = table.info
    return TableAt(
        version=version,
        committed_at=time_of(at_ms),
        name=info.full_name,
        table_version=info.version,
        schema_version=info.schema_version,
    )
