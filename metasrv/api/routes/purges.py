"""/v1/purges: dropped tables that nobody wants back."""

from fastapi import APIRouter, Response

from metasrv.api.documents.documented import BODY, change
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.api.http.respond import changed
from metasrv.service.ddl import purges
from metasrv.service.requests.submit_ddl import execute as make
from metasrv_base.wire.api.changes import PurgeRequest

router = APIRouter(prefix="/v1", tags=["tables"])


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
