"""/v1/cluster: answered by any server, also while nobody leads."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from base.wire.cluster import ClusterBody
from metasrv.api.answers import answer
from metasrv.api.asked import Server
from metasrv.api.documented import problems
from metasrv.api.query import Query as NoQuery
from metasrv.service import cluster

router = APIRouter(prefix="/v1", tags=["cluster"])


@router.get("/cluster", response_model=ClusterBody, responses=problems("invalid-request"))
async def get_cluster(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Who leads, and who is up."""
    return answer(await cluster.cluster(state))
