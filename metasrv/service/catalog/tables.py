"""One catalog, schema or table, as the catalog of a version has it."""

from keys.catalog.catalog import Catalog
from keys.catalog.tables.catalog_table import CatalogTable
from metasrv.service.bodies.shapes import (
    catalog_body,
    route_body,
    schema_body,
    table_body,
    table_definition,
)
from metasrv.service.catalog.reading import CatalogView, Freshness, view
from metasrv.service.requests.ddl_request import (
    FullSchemaName,
    FullTableName,
    must_be_identifiers,
    must_have_catalog,
    schema_named,
    table_named,
)
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotFound
from metasrv_base.sql.printing.table_sql import statements_of
from metasrv_base.wire.api.tables import CatalogBody, RouteBody, SchemaBody, TableBody
from metasrv_base.wire.language.sql import TableSqlBody


async def catalog(
    state: ServerState, name: str, freshness: Freshness
) -> tuple[CatalogBody, CatalogView]:
    must_be_identifiers(name)
    catalog_view = await view(state, freshness)
    must_have_catalog(catalog_view.catalog, name)
    info = catalog_view.catalog.catalogs[name]
    return catalog_body(info, catalog_view.catalog), catalog_view


async def schema(
    state: ServerState, name: FullSchemaName, freshness: Freshness
) -> tuple[SchemaBody, CatalogView]:
    catalog_view = await view(state, freshness)
    info = schema_named(catalog_view.catalog, name)
    return schema_body(info, catalog_view.catalog.version), catalog_view


async def table(
    state: ServerState, name: FullTableName, freshness: Freshness
) -> tuple[CatalogTable, bytes, CatalogView]:
    """The table, and its body as JSON. Raises NotFound, saying which part of the name does not
    exist."""
    catalog_view = await view(state, freshness)
    catalog = catalog_view.catalog
    table = table_named(catalog, name)
    text = state.texts.of(table, catalog, await state.addresses.known())
    return table, text, catalog_view


async def table_by_id(
    state: ServerState, table_id: int, freshness: Freshness
) -> tuple[TableBody, CatalogView]:
    """The table of an id, also a dropped one."""
    catalog_view = await view(state, freshness)
    table = catalog_view.catalog.by_id(table_id)
    if table is None:
        raise NotFound("table-not-found", table_id=table_id)
    addresses = await state.addresses.known()
    catalog = catalog_view.catalog
    return table_body(table, catalog.version, addresses, catalog.placing), catalog_view


async def route(
    state: ServerState, name: FullTableName, freshness: Freshness
) -> tuple[RouteBody, CatalogView]:
    catalog_view = await view(state, freshness)
    table = table_named(catalog_view.catalog, name)
    return route_body(table.route, await state.addresses.known()), catalog_view


async def table_sql(
    state: ServerState, name: FullTableName, freshness: Freshness
) -> tuple[TableSqlBody, CatalogView]:
    catalog_view = await view(state, freshness)
    info = table_named(catalog_view.catalog, name).info
    statements = statements_of(table_definition(info, catalog_view.catalog.placing))
    version = catalog_view.catalog.version
    return TableSqlBody(statements=statements, catalog_version=version), catalog_view


async def made_table(state: ServerState, table_id: int, version: int | None) -> TableBody:
    """The table as a change left it; as it is now, if that version is not kept any more."""
    catalog = left_by(state, version)
    table = catalog.tables.get(table_id)
    if table is None:
        raise NotFound("table-not-found", table_id=table_id)
    addresses = await state.addresses.known()
    return table_body(table, catalog.version, addresses, catalog.placing)


def made_schema(state: ServerState, name: FullSchemaName, version: int | None) -> SchemaBody:
    """The schema as its create left it. Raises NotFound if it is gone and that version too."""
    catalog = left_by(state, version)
    return schema_body(catalog.schema(name.catalog, name.schema), catalog.version)


def made_catalog(state: ServerState, name: str, version: int | None) -> CatalogBody:
    """Returns the catalog as its create left it. Raises NotFound if it is gone and that version
    too."""
    catalog = left_by(state, version)
    must_have_catalog(catalog, name)
    return catalog_body(catalog.catalogs[name], catalog)


def left_by(state: ServerState, version: int | None) -> Catalog:
    """The catalog of a version; as it is now, if the version is none or not kept any more."""
    catalog = state.follower.at(version) if version is not None else None
    return catalog or state.follower.catalog
