"""/v1/cluster: answered by any server, also while nobody leads."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from metasrv.api.documents.documented import problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Server
from metasrv.service.cluster import cluster
from metasrv_base.wire.api.cluster import ClusterBody

router = APIRouter(prefix="/v1", tags=["cluster"])


@router.get("/cluster", response_model=ClusterBody, responses=problems("invalid-request"))
async def get_cluster(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """The leader, and the servers that are up."""
    return answer(await cluster.cluster(state))
