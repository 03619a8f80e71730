"""/livez, /readyz, /metrics and /version: for machines that watch this process."""

from fastapi import APIRouter, Request, Response

from keys.catalog.log.handlers import STUCK_MS
from metasrv.api.documents.documented import problems
from metasrv.api.http.answers import answer
from metasrv.api.http.metrics import ServerMetrics
from metasrv.api.http.request_context import Server
from metasrv_base.errors import Unavailable
from metasrv_base.wire.api.cluster import Health, VersionBody

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

router = APIRouter(tags=["admin"])


@router.get("/livez", response_model=Health, responses=problems())
async def livez() -> Response:
    """The process answers."""
    return answer(Health())


@router.get("/readyz", response_model=Health, responses=problems("not-ready"))
async def readyz(state: Server) -> Response:
    """Whether this server can answer reads: it has the catalog, had an answer from etcd within a
    lease, and no handler of the catalog's log holds it back for half a minute."""
    if state.follower.catalog.version == 0:
        raise Unavailable("not-ready", what="the catalog")
    if state.is_stale:
        raise Unavailable("not-ready", what="the store")
    if state.handling_ms > STUCK_MS:
        raise Unavailable("not-ready", what="an update handler")
    return answer(Health())


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **problems()},
)
async def metrics(request: Request, state: Server) -> Response:
    """Prometheus text."""
    server_metrics = request.app.state.metrics
    assert isinstance(server_metrics, ServerMetrics)
    return Response(server_metrics.text(state), media_type=METRICS_TYPE)


@router.get("/version", response_model=VersionBody, responses=problems())
async def version(state: Server) -> Response:
    """The version, id and cluster of this server."""
    facts = state.facts
    return answer(
        VersionBody(version=facts.version, server_id=facts.server, cluster_id=state.cluster_id)
    )
