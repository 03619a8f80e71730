"""/v1/failovers: regions leave a node, by request."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from base.wire.plans import PlanBody, PlansBody
from base.wire.procedures import (
    FailoverBody,
    FailoverRequest,
    ProcedureBody,
    ProcedureList,
)
from metasrv.api.answers import answer
from metasrv.api.asked import AskedFor, Server
from metasrv.api.documented import BODY, CHANGE, OF_LEADER, problems
from metasrv.api.procedures import states
from metasrv.api.query import FailoversQuery
from metasrv.api.shape import failed_over
from metasrv.service import failovers
from metasrv.service.failover_plan import FAILOVERS
from metasrv.service.procedure_list import Filter, ListWanted, listed

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
    wanted = ListWanted(request.url.path, query.page_size, query.page_token, only)
    return answer(await listed(state, wanted))


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
async def fail_over(state: Server, asked: AskedFor, request: FailoverRequest) -> Response:
    """Move regions off a node that is gone; with `force`, off one that may still live."""
    return failed_over(state, asked, await failovers.fail_over(state, asked, request))
