"""/v1/nodes and /v1/regions: what the leader knows of them."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from metasrv.api.documents.documented import (
    BODY,
    CHANGE,
    LEADER,
    OF_LEADER,
    QUERY,
    page,
    problems,
    read,
)
from metasrv.api.http.answers import answer, read_answer
from metasrv.api.http.page_query import freshness, page_query
from metasrv.api.http.query import OrphansQuery, ReadQuery, RegionsQuery
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import AskedFor, Server
from metasrv.api.http.respond import failed_over
from metasrv.service.cluster import adoptions, decommissions, drains, node_changes, nodes
from metasrv.service.cluster.nodes import RegionFilter
from metasrv_base.wire.api.adoption import AdoptionBody, AdoptNodeRequest
from metasrv_base.wire.api.cluster import (
    CordonRequest,
    DecommissionRequest,
    DrainRequest,
    NodeBody,
    NodeDetailBody,
    NodeList,
    NodePatch,
    OrphanList,
    RebindRequest,
    RegionBody,
    RegionList,
    ReleaseRequest,
)
from metasrv_base.wire.api.plans import PlanBody
from metasrv_base.wire.api.procedures import ProcedureBody

CORDON = (
    *LEADER,
    *QUERY,
    "bad-idempotency-key",
    "version-mismatch",
    "object-locked",
    "storage-full",
)

router = APIRouter(prefix="/v1", tags=["nodes"])


@router.get("/nodes", response_model=NodeList, responses=problems(*OF_LEADER, "invalid-request"))
async def list_nodes(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """Every registered node, by id, with counts of its regions."""
    return answer(await nodes.nodes(state))


@router.get(
    "/nodes/{node}",
    response_model=NodeDetailBody,
    responses=problems(*OF_LEADER, "invalid-request"),
)
async def get_node(state: Server, node: str, query: Annotated[NoQuery, Query()]) -> Response:
    """One node, with regions that it reports."""
    return answer(await nodes.node(state, node))


@router.get(
    "/nodes/{node}/orphans",
    response_model=OrphanList,
    responses=problems(*OF_LEADER, "invalid-request", "wrong-cluster"),
)
async def list_orphans(
    state: Server, node: str, query: Annotated[OrphansQuery, Query()]
) -> Response:
    """Folders of regions on the node's disk that no route names, with the proof that they are
    orphans, or the reason for which that is not known; and those in quarantine, with the time after
    which they are deleted. The node is asked; nothing is deleted by this."""
    return answer(await nodes.orphans(state, node, int(query.first)))


@router.patch("/nodes/{node}", response_model=NodeBody, responses=problems(*CORDON, *BODY))
async def alter_node(state: Server, context: AskedFor, node: str, patch: NodePatch) -> Response:
    """Change labels of the node. Regions that it leads stay; later ones go by the new labels."""
    return answer(await node_changes.alter(state, context, node, patch))


@router.post("/nodes/{node}/cordon", response_model=NodeBody, responses=problems(*CORDON, *BODY))
async def cordon_node(
    state: Server, context: AskedFor, node: str, request: CordonRequest
) -> Response:
    """No new region comes to it. It goes on leading those that it has."""
    return answer(await node_changes.cordon(state, context, node, request))


@router.post("/nodes/{node}/uncordon", response_model=NodeBody, responses=problems(*CORDON))
async def uncordon_node(state: Server, context: AskedFor, node: str) -> Response:
    """Let the node take new regions again."""
    return answer(await node_changes.uncordon(state, context, node))


@router.post("/nodes/{node}/rebind", response_model=NodeBody, responses=problems(*CORDON, *BODY))
async def rebind_node(
    state: Server, context: AskedFor, node: str, request: RebindRequest
) -> Response:
    """Bind the node to another token, with which it registers and reports from now on."""
    return answer(await node_changes.rebind(state, context, node, request))


@router.post("/nodes/{node}/release", response_model=NodeBody, responses=problems(*CORDON, *BODY))
async def release_node(
    state: Server, context: AskedFor, node: str, request: ReleaseRequest
) -> Response:
    """End the quarantine of what a removed node brought back: what nobody knows may be deleted."""
    return answer(await node_changes.release(state, context, node, request))


@router.post(
    "/nodes/{node}/adopt",
    response_model=AdoptionBody,
    responses=problems(*CORDON, *BODY, "action-not-allowed", "wrong-cluster", "outcome-unknown"),
)
async def adopt_node(
    state: Server, context: AskedFor, node: str, request: AdoptNodeRequest
) -> Response:
    """Take over a node of the cluster from whose backup this one was restored. Once no other is
    awaited, its regions open where their newest files are."""
    return answer(await adoptions.adopt(state, context, node, request))


@router.post(
    "/nodes/{node}/drain",
    response_model=None,
    responses={
        200: {
            "model": ProcedureBody | PlanBody,
            "description": "It leads nothing (a client that waited), or the plan (`dry_run`).",
        },
        202: {"model": ProcedureBody, "description": "The procedure by which its regions leave."},
        **problems(*CHANGE, *BODY, "invalid-identifier", "node-not-eligible"),
    },
)
async def drain_node(
    state: Server, context: AskedFor, node: str, request: DrainRequest
) -> Response:
    """Cordon it, and move its regions to other nodes while it lives: in order, no row lost."""
    return failed_over(state, context, await drains.drain(state, context, node, request))


@router.post(
    "/nodes/{node}/decommission",
    response_model=None,
    responses={
        200: {
            "model": NodeBody | ProcedureBody,
            "description": "It is removed; with `lost`, the procedure (a client that waited).",
        },
        202: {
            "model": ProcedureBody,
            "description": "With `lost`: the procedure that moves its regions and removes it.",
        },
        **problems(*CHANGE, *BODY, "node-in-use", "node-still-alive"),
    },
)
async def decommission_node(
    state: Server, context: AskedFor, node: str, request: DecommissionRequest
) -> Response:
    """Remove it from the cluster; refused while anything names it. With `lost`: move its regions to
    other nodes, then remove it."""
    done = await decommissions.decommission(state, context, node, request)
    return answer(done) if isinstance(done, NodeBody) else failed_over(state, context, (done,))


@router.get("/regions", response_model=RegionList, responses=page(*OF_LEADER))
async def list_regions(
    request: Request, state: Server, query: Annotated[RegionsQuery, Query()]
) -> Response:
    """The regions of living tables, by id."""
    only = RegionFilter(query.node, query.table)
    body, view = await nodes.regions(state, page_query(request, query), only)
    return read_answer(request, body, view)


@router.get("/regions/{region_id}", response_model=RegionBody, responses=read(*OF_LEADER))
async def get_region(
    request: Request, state: Server, region_id: str, query: Annotated[ReadQuery, Query()]
) -> Response:
    """One region."""
    body, view = await nodes.region(state, region_id, freshness(query))
    return read_answer(request, body, view)
