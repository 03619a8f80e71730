"""/v1/catalogs: tenants, and the schemas in them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents.documented import BODY, MISSED, change, page, read
from metasrv.api.http.answers import definition_etag, read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import PageQuery, ReadQuery
from metasrv.api.http.request_context import AskedFor, AskedToDrop, InSchema, Name, Server
from metasrv.api.http.respond import executed
from metasrv.service.catalog import listing, tables
from metasrv.service.ddl import ddl_catalogs
from metasrv.service.ddl.ddl_schemas import create_schema as create_schema_request
from metasrv.service.ddl.ddl_schemas import drop_schema as drop_schema_request
from metasrv_base.wire.api.tables import (
    CatalogBody,
    CatalogList,
    CatalogSpec,
    SchemaBody,
    SchemaList,
    SchemaSpec,
)
from metasrv_base.wire.api.tenants import CatalogPatch

router = APIRouter(prefix="/v1/catalogs", tags=["catalogs"])


@router.get("", response_model=CatalogList, responses=page())
async def list_catalogs(
    request: Request, state: Server, query: Annotated[PageQuery, Query()]
) -> Response:
    """The catalogs, by name."""
    body, view = await listing.catalogs(state, page_query(request, query))
    return read_answer(request, body, view)


@router.post(
    "",
    status_code=201,
    response_model=None,
    responses=change(
        201,
        CatalogBody,
        *BODY,
        "invalid-identifier",
        "reserved-name",
        "already-exists",
        "schema-conflict",
    ),
)
async def create_catalog(state: Server, context: AskedFor, spec: CatalogSpec) -> Response:
    """Make a catalog."""
    return await executed(state, context, ddl_catalogs.create_catalog(context, spec))


@router.patch(
    "/{catalog}",
    response_model=None,
    responses=MISSED | change(200, CatalogBody, *BODY, "invalid-identifier", "unsupported"),
)
async def alter_catalog(
    state: Server, context: AskedFor, catalog: Name, patch: CatalogPatch
) -> Response:
    """Change settings and limits of a catalog; those that are not named stay as they are."""
    return await executed(state, context, ddl_catalogs.alter_catalog(context, catalog, patch))


@router.delete(
    "/{catalog}",
    status_code=204,
    response_model=None,
    responses=change(204, None, "invalid-identifier", "not-empty"),
)
async def drop_catalog(state: Server, context: AskedToDrop, catalog: Name) -> Response:
    """Drop a catalog: one without a table and other schemas than `public`, or (`cascade`) with all
    that it holds."""
    return await executed(state, context, ddl_catalogs.drop_catalog(context, catalog))


@router.get("/{catalog}", response_model=CatalogBody, responses=read("invalid-identifier"))
async def get_catalog(
    request: Request, state: Server, catalog: Name, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One catalog."""
    body, view = await tables.catalog(state, catalog, freshness(query))
    return read_answer(request, body, view, definition_etag(body))


@router.get("/{catalog}/schemas", response_model=SchemaList, responses=page("invalid-identifier"))
async def list_schemas(
    request: Request, state: Server, catalog: Name, query: Annotated[PageQuery, Query()]
) -> Response:
    """The schemas of a catalog, by name."""
    body, view = await listing.schemas(state, catalog, page_query(request, query))
    return read_answer(request, body, view)


@router.post(
    "/{catalog}/schemas",
    status_code=201,
    response_model=None,
    responses=change(
        201,
        SchemaBody,
        *BODY,
        "invalid-identifier",
        "reserved-name",
        "already-exists",
        "schema-conflict",
    ),
)
async def create_schema(
    state: Server, context: AskedFor, catalog: Name, spec: SchemaSpec
) -> Response:
    """Make a schema."""
    return await executed(state, context, create_schema_request(context, catalog, spec))


@router.get(
    "/{catalog}/schemas/{schema}", response_model=SchemaBody, responses=read("invalid-identifier")
)
async def get_schema(
    request: Request, state: Server, name: InSchema, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One schema."""
    body, view = await tables.schema(state, name, freshness(query))
    return read_answer(request, body, view, definition_etag(body))


@router.delete(
    "/{catalog}/schemas/{schema}",
    status_code=204,
    response_model=None,
    responses=change(204, None, "invalid-identifier", "not-empty"),
)
async def drop_schema(state: Server, context: AskedToDrop, name: InSchema) -> Response:
    """Drop a schema: one that holds no table, or (`cascade`) with its tables."""
    return await executed(state, context, drop_schema_request(context, name))
