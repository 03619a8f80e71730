"""/v1/catalogs/{catalog}/tablespaces: groups of tables whose regions stay together."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from metasrv.api.documents.documented import BODY, MISSED, change, page, read
from metasrv.api.http.answers import definition_etag, read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import PageQuery, ReadQuery
from metasrv.api.http.request_context import AskedFor, AskedToDropTable, Name, Server
from metasrv.api.http.respond import executed
from metasrv.service.catalog import placements
from metasrv.service.ddl import ddl_tablespaces
from metasrv.service.requests.placing_names import FullTablespaceName
from metasrv_base.wire.api.placing.placements import (
    PlacingRename,
    TablespaceBody,
    TablespaceList,
    TablespacePatch,
    TablespaceSpec,
)

NEW = (
    "invalid-identifier",
    "reserved-name",
    "already-exists",
    "schema-conflict",
    "too-many-objects",
)
RENAMED = (*BODY, "invalid-identifier", "reserved-name", "already-exists", "object-in-use")

router = APIRouter(prefix="/v1/catalogs/{catalog}/tablespaces", tags=["tablespaces"])


async def _name(catalog: Name, tablespace: Name) -> FullTablespaceName:
    return FullTablespaceName(catalog, tablespace)


Named = Annotated[FullTablespaceName, Depends(_name)]


@router.get("", response_model=TablespaceList, responses=page("invalid-identifier"))
async def list_tablespaces(
    request: Request, state: Server, catalog: Name, query: Annotated[PageQuery, Query()]
) -> Response:
    """The tablespaces of a catalog, by name."""
    body, view = await placements.tablespaces(state, catalog, page_query(request, query))
    return read_answer(request, body, view)


@router.post(
    "", status_code=201, response_model=None, responses=change(201, TablespaceBody, *BODY, *NEW)
)
async def create_tablespace(
    state: Server, context: AskedFor, catalog: Name, spec: TablespaceSpec
) -> Response:
    """Make a tablespace."""
    return await executed(state, context, ddl_tablespaces.create_tablespace(context, catalog, spec))


@router.get("/{tablespace}", response_model=TablespaceBody, responses=read("invalid-identifier"))
async def get_tablespace(
    request: Request, state: Server, name: Named, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One tablespace."""
    body, view = await placements.tablespace(state, name, freshness(query))
    return read_answer(request, body, view, definition_etag(body))


@router.patch(
    "/{tablespace}",
    response_model=None,
    responses=MISSED | change(200, TablespaceBody, *BODY, "invalid-identifier"),
)
async def alter_tablespace(
    state: Server, context: AskedFor, name: Named, patch: TablespacePatch
) -> Response:
    """Set or remove the comment of a tablespace."""
    return await executed(state, context, ddl_tablespaces.alter_tablespace(context, name, patch))


@router.delete(
    "/{tablespace}",
    status_code=204,
    response_model=None,
    responses=change(204, None, "invalid-identifier", "object-in-use"),
)
async def drop_tablespace(state: Server, context: AskedToDropTable, name: Named) -> Response:
    """Drop a tablespace that no table is in."""
    return await executed(state, context, ddl_tablespaces.drop_tablespace(context, name))


@router.post(
    "/{tablespace}/rename",
    response_model=None,
    responses=MISSED | change(200, TablespaceBody, *RENAMED),
)
async def rename_tablespace(
    state: Server, context: AskedFor, name: Named, rename: PlacingRename
) -> Response:
    """Give a tablespace another name; its tables keep it."""
    return await executed(state, context, ddl_tablespaces.rename_tablespace(context, name, rename))
