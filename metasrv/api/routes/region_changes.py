"""/v1/regions/{region_id}/...: changes of one region, by request."""

from fastapi import APIRouter, Response

from metasrv.api.documents.documented import BODY, CHANGE, Responses, problems
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.api.http.respond import failed_over
from metasrv.service.copies import region_changes
from metasrv_base.wire.api.plans import PlanBody
from metasrv_base.wire.api.procedures import (
    AddCopyRequest,
    MoveCopyRequest,
    ProcedureBody,
    RemoveCopyRequest,
    SwitchLeaderRequest,
)

ENDS: Responses = {
    200: {
        "model": ProcedureBody | PlanBody,
        "description": "It is done (a client that waited), or the plan (`dry_run`).",
    },
    202: {"model": ProcedureBody, "description": "The procedure."},
}

router = APIRouter(prefix="/v1/regions/{region_id}", tags=["regions"])


@router.post(
    "/switch-leader",
    response_model=None,
    responses={
        **ENDS,
        **problems(
            *CHANGE,
            *BODY,
            "invalid-identifier",
            "node-not-eligible",
            "epoch-mismatch",
            "stale-epoch",
            "action-not-allowed",
        ),
    },
)
async def switch_leader(
    state: Server, context: AskedFor, region_id: str, request: SwitchLeaderRequest
) -> Response:
    """Have another copy in sync lead the region, while rows are written: writes wait at the former
    leader, for a fraction of a second, and none is lost or refused."""
    done = await region_changes.switch_leader(state, context, region_id, request)
    return failed_over(state, context, done)


@router.post(
    "/copies",
    response_model=None,
    responses={
        **ENDS,
        **problems(
            *CHANGE,
            *BODY,
            "invalid-identifier",
            "node-not-eligible",
            "replica-limit",
            "action-not-allowed",
            "version-mismatch",
        ),
    },
)
async def add_copy(
    state: Server, context: AskedFor, region_id: str, request: AddCopyRequest
) -> Response:
    """Add a copy of the region, which is sent all rows and then joins the set by itself."""
    done = await region_changes.add_copy(state, context, region_id, request)
    return failed_over(state, context, done)


@router.post(
    "/copies/{node}/remove",
    response_model=None,
    responses={**ENDS, **problems(*CHANGE, *BODY, "action-not-allowed")},
)
async def remove_copy(
    state: Server, context: AskedFor, region_id: str, node: str, request: RemoveCopyRequest
) -> Response:
    """Remove the copy on a node; refused for the leader's, and without `force` for one that is
    needed."""
    done = await region_changes.remove_copy(state, context, region_id, node, request)
    return failed_over(state, context, done)


@router.post(
    "/copies/{node}/move",
    response_model=None,
    responses={
        **ENDS,
        **problems(
            *CHANGE,
            *BODY,
            "invalid-identifier",
            "node-not-eligible",
            "replica-limit",
            "action-not-allowed",
        ),
    },
)
async def move_copy(
    state: Server, context: AskedFor, region_id: str, node: str, request: MoveCopyRequest
) -> Response:
    """Move the copy on a node to another: the new one is in sync before the old one goes. The
    leader's moves too, while rows are written."""
    done = await region_changes.move_copy(state, context, region_id, node, request)
    return failed_over(state, context, done)
