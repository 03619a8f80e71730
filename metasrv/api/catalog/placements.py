"""/v1/placements: how often, on which nodes and by which engines regions of tables are kept."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents.documented import BODY, MISSED, change, page, read
from metasrv.api.http.answers import read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import PageQuery, ReadQuery
from metasrv.api.http.request_context import AskedFor, AskedToDropTable, Name, Server
from metasrv.api.http.respond import executed
from metasrv.service.catalog import placements
from metasrv.service.ddl import ddl_placements
from metasrv_base.wire.api.placing.placements import (
    PlacementBody,
    PlacementList,
    PlacementPatch,
    PlacementSpec,
    PlacingRename,
)

NEW = (
    "invalid-identifier",
    "reserved-name",
    "already-exists",
    "schema-conflict",
    "too-many-objects",
    "unsupported",
)
ALTERED = (*BODY, "invalid-identifier", "reserved-name", "object-in-use")

router = APIRouter(prefix="/v1/placements", tags=["placements"])


@router.get("", response_model=PlacementList, responses=page())
async def list_placements(
    request: Request, state: Server, query: Annotated[PageQuery, Query()]
) -> Response:
    """The placements, by name."""
    body, view = await placements.placements(state, page_query(request, query))
    return read_answer(request, body, view)


@router.post(
    "", status_code=201, response_model=None, responses=change(201, PlacementBody, *BODY, *NEW)
)
async def create_placement(state: Server, context: AskedFor, spec: PlacementSpec) -> Response:
    """Make a placement."""
    return await executed(state, context, ddl_placements.create_placement(context, spec))


@router.get("/{placement}", response_model=PlacementBody, responses=read("invalid-identifier"))
async def get_placement(
    request: Request, state: Server, placement: Name, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One placement."""
    body, view = await placements.placement(state, placement, freshness(query))
    return read_answer(request, body, view, body.etag)


@router.patch(
    "/{placement}",
    response_model=None,
    responses=MISSED | change(200, PlacementBody, *ALTERED, "unsupported"),
)
async def alter_placement(
    state: Server, context: AskedFor, placement: Name, patch: PlacementPatch
) -> Response:
    """Alter a placement. Regions that are there stay where they are."""
    return await executed(state, context, ddl_placements.alter_placement(context, placement, patch))


@router.delete(
    "/{placement}",
    status_code=204,
    response_model=None,
    responses=change(204, None, "invalid-identifier", "object-in-use"),
)
async def drop_placement(state: Server, context: AskedToDropTable, placement: Name) -> Response:
    """Drop a placement that no table uses."""
    return await executed(state, context, ddl_placements.drop_placement(context, placement))


@router.post(
    "/{placement}/rename",
    response_model=None,
    responses=MISSED | change(200, PlacementBody, *ALTERED, "already-exists"),
)
async def rename_placement(
    state: Server, context: AskedFor, placement: Name, rename: PlacingRename
) -> Response:
    """Give a placement another name; the tables that use it keep it."""
    return await executed(
        state, context, ddl_placements.rename_placement(context, placement, rename)
    )
