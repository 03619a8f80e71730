"""/v1/batch: many commands, one version of the catalog, all or nothing."""

from fastapi import APIRouter, Response

from metasrv.api.documents.documented import OF_COMMANDS, change
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.api.http.respond import changed
from metasrv.service.ddl.batch import PLANNED_AT_ONCE, batch
from metasrv.service.requests.submit_ddl import execute as make
from metasrv_base.concurrency.run_in_thread import run_in_thread
from metasrv_base.wire.api.batches import BatchBody, BatchRequest

router = APIRouter(prefix="/v1", tags=["batch"])
BATCH = "/batch"


@router.post(
    BATCH,
    response_model=None,
    responses=change(
        200,
        BatchBody,
        *OF_COMMANDS,
    ),
)
async def run_batch(state: Server, context: AskedFor, request: BatchRequest) -> Response:
    """Carry out many commands, in order, each on the result of those before it: in one version of
    the catalog, or not at all. Commands take effect in one version: catalogs, schemas and tables
    are made, renamed and dropped, and options of tables set. Changes of columns, indexes,
    constraints and types go through states, and have requests of their own."""
    is_short = len(request.commands) <= PLANNED_AT_ONCE
    done = await make(state, await run_in_thread(is_short, batch, context, request))
    return await changed(state, context, done)
