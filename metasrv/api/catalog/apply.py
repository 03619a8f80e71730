"""/v1/apply and /v1/export: the catalog as files declare it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents.documented import OF_COMMANDS, change, read
from metasrv.api.http.answers import answer, read_answer
from metasrv.api.http.page_query import freshness
from metasrv.api.http.query import ExportQuery
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.service.apply.export import export
from metasrv.service.apply.run_apply import run
from metasrv_base.wire.language.apply import ApplyBody, ApplyRequest
from metasrv_base.wire.language.declared import DesiredState

router = APIRouter(prefix="/v1", tags=["apply"])


@router.post(
    "/apply",
    response_model=None,
    responses=change(
        200,
        ApplyBody,
        *OF_COMMANDS,
        "invalid-sql",
        "not-in-place",
        "destructive-plan",
        "plan-changed",
        "object-in-use",
        "not-found",
    ),
)
async def apply_state(state: Server, context: AskedFor, request: ApplyRequest) -> Response:
    """Bring the catalog to a desired state: the difference as operations, and in mode `apply` these
    done, one step after the other, each as the request of its own that says the same. 202: a change
    is not over, and the steps behind it are not begun; once it has ended, send the request again
    with the `plan_hash` of this answer. A step that fails ends it: those before it are done."""
    body = await run(state, context, request)
    return answer(body, 200 if body.procedure is None or request.mode == "plan" else 202)


@router.get("/export", response_model=DesiredState, responses=read("not-found"))
async def export_state(
    request: Request, state: Server, query: Annotated[ExportQuery, Query()]
) -> Response:
    """A catalog, or one schema of it, as the desired state that `POST /v1/apply` takes."""
    body, view = await export(state, query.catalog, query.schema_name, freshness(query))
    return read_answer(request, body, view)
