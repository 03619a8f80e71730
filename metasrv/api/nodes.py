"""/v1/nodes and /v1/regions: what the leader knows of them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from base.wire.cluster import NodeBody, NodeList, RegionBody, RegionList
from metasrv.api.answers import answer, read_answer
from metasrv.api.asked import Server
from metasrv.api.documented import OF_LEADER, page, problems, read
from metasrv.api.query import Query as NoQuery
from metasrv.api.query import ReadQuery, RegionsQuery
from metasrv.api.wanted import freshness, wanted
from metasrv.service import nodes
from metasrv.service.nodes import RegionFilter

router = APIRouter(prefix="/v1", tags=["nodes"])


@router.get("/nodes", response_model=NodeList, responses=problems(*OF_LEADER, "invalid-request"))
async def list_nodes(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Every registered node, by id."""
    return answer(await nodes.nodes(state))


@router.get(
    "/nodes/{node}", response_model=NodeBody, responses=problems(*OF_LEADER, "invalid-request")
)
async def get_node(state: Server, node: str, query: Annotated[NoQuery, Query()]) -> Response:
    """One node."""
    return answer(await nodes.node(state, node))


@router.get("/regions", response_model=RegionList, responses=page(*OF_LEADER))
async def list_regions(
    request: Request, state: Server, query: Annotated[RegionsQuery, Query()]
) -> Response:
    """The regions of living tables, by id."""
    only = RegionFilter(query.node, query.table)
    body, found = await nodes.regions(state, wanted(request, query), only)
    return read_answer(request, body, found)


@router.get("/regions/{region_id}", response_model=RegionBody, responses=read(*OF_LEADER))
async def get_region(
    request: Request, state: Server, region_id: str, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One region."""
    body, found = await nodes.region(state, region_id, freshness(query))
    return read_answer(request, body, found)
