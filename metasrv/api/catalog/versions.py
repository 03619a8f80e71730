"""/v1/catalog/versions, T/versions and T/diff: what changed, when, by whom."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.catalog.tables import TABLE
from metasrv.api.documents.documented import OF_TABLE, page, read
from metasrv.api.http.answers import read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import DiffQuery, ReadQuery, TableVersionsQuery, VersionsQuery, Whole
from metasrv.api.http.request_context import OfTable, Server
from metasrv.service.history import versions
from metasrv.service.history.changes import Filters
from metasrv_base.wire.api.versions import (
    CatalogChange,
    TableDiff,
    TableVersionList,
    VersionList,
)

router = APIRouter(prefix="/v1", tags=["versions"])


@router.get("/catalog/versions", response_model=VersionList, responses=page())
async def list_versions(
    request: Request, state: Server, query: Annotated[VersionsQuery, Query()]
) -> Response:
    """The changes of the catalog, the newest first: each request is one, however many versions it
    made."""
    filters = Filters(query.operation, query.catalog, query.schema_name, query.table_id, query.by)
    body, view = await versions.versions(
        state, page_query(request, query), filters, query.transitions
    )
    return read_answer(request, body, view)


@router.get("/catalog/versions/{number}", response_model=CatalogChange, responses=read())
async def get_version(
    request: Request, state: Server, number: Whole, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One version by itself, with the states of the elements that it moved."""
    body, view = await versions.version(state, number, freshness(query))
    return read_answer(request, body, view)


@router.get(TABLE + "/versions", response_model=TableVersionList, responses=page(*OF_TABLE))
async def list_table_versions(
    request: Request, state: Server, name: OfTable, query: Annotated[TableVersionsQuery, Query()]
) -> Response:
    """The changes of a table, the newest first, under whatever name it had; and the sets of columns
    that it had."""
    body, view = await versions.table_versions(
        state, name, page_query(request, query), query.transitions
    )
    return read_answer(request, body, view)


@router.get(TABLE + "/diff", response_model=TableDiff, responses=read(*OF_TABLE))
async def get_table_diff(
    request: Request, state: Server, name: OfTable, query: Annotated[DiffQuery, Query()]
) -> Response:
    """The difference of a table between two versions of the catalog, as operations that an alter
    takes."""
    body, view = await versions.table_diff(state, name, query.from_, query.to)
    return read_answer(request, body, view)
