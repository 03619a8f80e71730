"""/internal/v1: what nodes say to the leader. A follower answers 421 with the leader's URL."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from metasrv.api.documents.documented import BODY, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Holder, Server
from metasrv.service.cluster import copy_changes, internal, settings, silences
from metasrv_base.wire.api.cluster import SettingList
from metasrv_base.wire.node.copy_changes import CopyChangesAnswer, CopyChangesRequest
from metasrv_base.wire.node.nodes import (
    HeartbeatAnswer,
    HeartbeatRequest,
    RegisterAnswer,
    RegisterRequest,
)
from metasrv_base.wire.node.silences import SilenceAnswer, SilenceReport

HEARTBEAT = "/nodes/{node_id}/heartbeat"
LEADER = ("not-leader", "no-leader", "not-ready")

router = APIRouter(prefix="/internal/v1", tags=["internal"])


@router.post(
    "/nodes/{node_id}/register",
    response_model=RegisterAnswer,
    responses=problems(
        *LEADER,
        *BODY,
        "invalid-identifier",
        "wrong-cluster",
        "node-bound",
        "node-removed",
        "stale-incarnation",
        "object-locked",
        "outcome-unknown",
        "storage-full",
    ),
)
async def register(
    state: Server,
    node_id: str,
    query: Annotated[NoQuery, Query()],
    request: RegisterRequest,
    by: Holder,
) -> Response:
    """Registers a node, at every start of its process. Durable when it is answered."""
    return answer(await internal.register(state, node_id, request, by))


@router.put(
    HEARTBEAT,
    response_model=HeartbeatAnswer,
    responses=problems(
        *LEADER,
        *BODY,
        "invalid-identifier",
        "wrong-cluster",
        "node-bound",
        "stale-incarnation",
    ),
)
async def heartbeat(
    state: Server,
    node_id: str,
    query: Annotated[NoQuery, Query()],
    request: HeartbeatRequest,
    by: Holder,
) -> Response:
    """Renews leases, and is told what to do. One that is not newer changes nothing."""
    return answer(await internal.heartbeat(state, node_id, request, by))


@router.post(
    "/nodes/{node_id}/copies",
    response_model=CopyChangesAnswer,
    responses=problems(
        *LEADER,
        *BODY,
        "invalid-identifier",
        "wrong-cluster",
        "node-bound",
        "stale-incarnation",
    ),
)
async def change_copies(
    state: Server,
    node_id: str,
    query: Annotated[NoQuery, Query()],
    request: CopyChangesRequest,
    by: Holder,
) -> Response:
    """Has copies join the sets of regions that the node leads, or leave them. Each change is done
    once, however often it is sent; results come once all have ended, or after two seconds."""
    return answer(await copy_changes.change_copies(state, node_id, request, by))


@router.post(
    "/nodes/{node_id}/silent-leaders",
    response_model=SilenceAnswer,
    responses=problems(
        *LEADER,
        *BODY,
        "invalid-identifier",
        "wrong-cluster",
        "node-bound",
        "stale-incarnation",
        "outcome-unknown",
        "storage-full",
    ),
)
async def report_silence(
    state: Server,
    node_id: str,
    query: Annotated[NoQuery, Query()],
    request: SilenceReport,
    by: Holder,
) -> Response:
    """Reports a leader that asks the copies of a node for no promise any more. The leader itself
    and another copy are asked at once; if nobody hears it, copies lead its regions next."""
    return answer(await silences.report(state, node_id, request, by))


@router.get(
    "/settings", response_model=SettingList, responses=problems("not-ready", "invalid-request")
)
async def get_node_settings(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """The settings, as in `GET /v1/settings`."""
    return answer(await settings.settings(state))
