"""/v1/cluster and /v1/settings: answered by any server, also while nobody leads."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from base.wire.cluster import ClusterBody, MaintenanceBody, MaintenanceRequest, SettingList
from metasrv.api.answers import answer
from metasrv.api.asked import AskedFor, Server
from metasrv.api.documented import BODY, LEADER, problems
from metasrv.api.query import Query as NoQuery
from metasrv.service import cluster

router = APIRouter(prefix="/v1", tags=["cluster"])


@router.get("/cluster", response_model=ClusterBody, responses=problems("invalid-request"))
async def get_cluster(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Who leads, and who is up."""
    return answer(await cluster.cluster(state))


@router.get(
    "/cluster/maintenance",
    response_model=MaintenanceBody,
    responses=problems("not-ready", "invalid-request"),
)
async def get_maintenance(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Whether failover waits for people."""
    return answer(await cluster.maintenance(state))


@router.put(
    "/cluster/maintenance",
    response_model=MaintenanceBody,
    responses=problems(*LEADER, *BODY, "object-locked", "unsupported", "version-mismatch"),
)
async def set_maintenance(state: Server, asked: AskedFor, request: MaintenanceRequest) -> Response:
    """Switch automatic failover off or on. Sending it again does no harm."""
    return answer(await cluster.set_maintenance(state, asked, request))


@router.get(
    "/settings",
    response_model=SettingList,
    responses=problems("not-ready", "invalid-request"),
)
async def get_settings(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """What operators can change while the service runs."""
    return answer(await cluster.settings(state))
