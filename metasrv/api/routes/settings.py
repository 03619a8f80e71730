"""/v1/settings, and the two that have a route of their own: maintenance, and the pause of all
procedures. Read at any server; changed at the leader."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from metasrv.api.documents.documented import BODY, LEADER, QUERY, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.service.cluster import settings
from metasrv_base.wire.api.cluster import (
    MaintenanceBody,
    MaintenanceRequest,
    PauseBody,
    PauseRequest,
    SettingList,
    SettingRequest,
)
from metasrv_base.wire.node.nodes import SettingBody

READ = problems("not-ready", *QUERY)
PUT = problems(
    *LEADER,
    *BODY,
    "bad-idempotency-key",
    "object-locked",
    "unsupported",
    "version-mismatch",
    "storage-full",
)

router = APIRouter(prefix="/v1", tags=["settings"])


@router.get("/cluster/maintenance", response_model=MaintenanceBody, responses=READ)
async def get_maintenance(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Whether failover waits for people."""
    return answer(await settings.maintenance(state))


@router.put("/cluster/maintenance", response_model=MaintenanceBody, responses=PUT)
async def set_maintenance(
    state: Server, context: AskedFor, request: MaintenanceRequest
) -> Response:
    """Switch automatic failover off or on. Sending it again does no harm."""
    return answer(await settings.set_maintenance(state, context, request))


@router.get("/cluster/procedures", response_model=PauseBody, responses=READ)
async def get_pause(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Whether all procedures are paused."""
    return answer(await settings.pause(state))


@router.put("/cluster/procedures", response_model=PauseBody, responses=PUT)
async def set_pause(state: Server, context: AskedFor, request: PauseRequest) -> Response:
    """Pause all procedures, or let them go on. Sending it again does no harm."""
    return answer(await settings.set_pause(state, context, request))


@router.get("/settings", response_model=SettingList, responses=READ)
async def get_settings(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """The settings that operators can change while the service runs."""
    return answer(await settings.settings(state))


@router.get("/settings/{name}", response_model=SettingBody, responses=READ)
async def get_setting(state: Server, name: str, query: Annotated[NoQuery, Query()]) -> Response:
    """One setting."""
    return answer(await settings.setting(state, name))


@router.put("/settings/{name}", response_model=SettingBody, responses=PUT)
async def put_setting(
    state: Server, context: AskedFor, name: str, request: SettingRequest
) -> Response:
    """Change one setting, for the running service and for every leader to come."""
    return answer(await settings.put_setting(state, context, name, request))
