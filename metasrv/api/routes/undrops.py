"""Routes of what was dropped: an index or a column is brought back within its grace time, a table
is deleted for good."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from metasrv.api.catalog.tables import TABLE
from metasrv.api.documents.documented import BODY, LEADER, OF_TABLE, Responses, change, problems
from metasrv.api.http.request_context import AskedFor, OfTable, Server, Wait
from metasrv.api.http.respond import changed
from metasrv.api.routes.steering import Steered, cancel_procedure
from metasrv.service.ddl import purges, undrops
from metasrv.service.requests.submit_ddl import execute as make
from metasrv_base.wire.api.changes import PurgeRequest
from metasrv_base.wire.api.procedures import ProcedureBody
from procedures.elements.element_targets import What

router = APIRouter(prefix="/v1", tags=["tables"])
ElementName = Annotated[str, Path()]
RESPONSES: Responses = {
    200: {"model": ProcedureBody, "description": "It is back, or would be (`dry_run`)."},
    202: {"model": ProcedureBody, "description": "Stored, and under way."},
    **problems(*LEADER, *OF_TABLE, "past-point-of-no-return", "action-not-allowed"),
}


@router.post(TABLE + "/indexes/{index}/undrop", response_model=None, responses=RESPONSES)
async def undrop_index(
    state: Server, name: OfTable, index: ElementName, steer: Steered, wait: Wait
) -> Response:
    """Cancel the drop of an index in its grace time: it is public again."""
    drop = await undrops.drop_under_way(state, name, What.INDEX, index)
    return await cancel_procedure(state, drop, steer, wait)


@router.post(TABLE + "/columns/{column}/undrop", response_model=None, responses=RESPONSES)
async def undrop_column(
    state: Server, name: OfTable, column: ElementName, steer: Steered, wait: Wait
) -> Response:
    """Cancel the alter that drops a column, with all its other operations, in its grace time."""
    drop = await undrops.drop_under_way(state, name, What.COLUMN, column)
    return await cancel_procedure(state, drop, steer, wait)


@router.post(
    "/purges",
    status_code=204,
    response_model=None,
    responses=change(
        204, None, *BODY, "invalid-identifier", "table-not-found", "ambiguous-dropped-table"
    ),
)
async def purge_table(state: Server, context: AskedFor, request: PurgeRequest) -> Response:
    """Delete a dropped table for good: its keys, then its files. There is no undrop of it."""
    return await changed(state, context, await make(state, purges.purge_table(context, request)))
