"""/v1/failovers: regions leave a node, by request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents.documented import BODY, CHANGE, OF_LEADER, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import FailoversQuery
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.api.http.respond import failed_over
from metasrv.api.routes.procedures import states
from metasrv.service.cluster import failovers
from metasrv.service.cluster.failover_plan import FAILOVERS
from metasrv.service.procedures.procedure_list import Filter, ListWanted, listed
from metasrv_base.wire.api.plans import PlanBody, PlansBody
from metasrv_base.wire.api.procedures import (
    FailoverBody,
    FailoverRequest,
    ProcedureBody,
    ProcedureList,
)

router = APIRouter(prefix="/v1/failovers", tags=["failovers"])


@router.get(
    "",
    response_model=ProcedureList,
    responses=problems(*OF_LEADER, "bad-page-token", "invalid-request"),
)
async def list_failovers(
    request: Request, state: Server, query: Annotated[FailoversQuery, Query()]
) -> Response:
    """Procedures that move regions off a node, newest first."""
    only = Filter(states(query.state), FAILOVERS)
    list_request = ListWanted(request.url.path, query.page_size, query.page_token, only)
    return answer(await listed(state, list_request))


@router.post(
    "",
    response_model=None,
    responses={
        200: {
            "model": ProcedureBody | FailoverBody | PlanBody | PlansBody,
            "description": "All of it is over (a client that waited), or the plan (`dry_run`).",
        },
        202: {
            "model": ProcedureBody | FailoverBody,
            "description": "The procedure; a list of them where regions of several tables or "
            "leaders were named. A node that is being failed over already: that procedure.",
        },
        **problems(
            *CHANGE,
            *BODY,
            "invalid-identifier",
            "node-still-alive",
            "node-not-eligible",
            "failover-guard",
            "maintenance-mode",
            "epoch-mismatch",
        ),
    },
)
async def fail_over(state: Server, context: AskedFor, request: FailoverRequest) -> Response:
    """Move regions off a node that is gone; with `force`, off one that may still live."""
    return failed_over(state, context, await failovers.fail_over(state, context, request))
