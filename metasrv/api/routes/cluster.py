"""/v1/cluster and /v1/backups: answered by any server, also while nobody leads."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from metasrv.api.documents.documented import problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Server
from metasrv.service.cluster import backups, cluster
from metasrv_base.backup.backup_file import MEDIA_TYPE
from metasrv_base.wire.api.cluster import ClusterBody
from serving.timed_stream import TimedStream

router = APIRouter(prefix="/v1", tags=["cluster"])


@router.get("/cluster", response_model=ClusterBody, responses=problems("invalid-request"))
async def get_cluster(state: Server, query: Annotated[NoQuery, Query()]) -> Response:
    """The leader, and the servers that are up."""
    return answer(await cluster.cluster(state))


@router.post(
    "/backups",
    response_class=Response,
    responses={
        200: {
            "description": "gzip over lines of JSON: a header, a line for each key, and an end "
            "with a digest. Without the end it is no backup.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **problems("not-ready"),
    },
)
async def make_backup(state: Server) -> Response:
    """Every key of the cluster at one revision of the store, as a file. Changes go on meanwhile."""
    backup = await backups.begun(state)
    name = f"metasrv-{backup.header.cluster_id}-{backup.header.revision}.backup.gz"
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    return TimedStream(backup.parts(), MEDIA_TYPE, headers=headers, ended=backup.ended)
