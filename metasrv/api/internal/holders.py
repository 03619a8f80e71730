"""Schema leases: what holders say to the leader, and who they are."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from metasrv.api.documents.documented import BODY, OF_LEADER, problems
from metasrv.api.http.answers import answer
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.query import SchemaLeasesQuery, SignOffQuery, WatchQuery
from metasrv.api.http.request_context import Server
from metasrv.api.internal.internal import LEADER
from metasrv.service.catalog import feed
from metasrv.service.catalog.feed import Start
from metasrv.service.cluster import holders
from metasrv_base.wire.frontend.feed import MEDIA_TYPE
from metasrv_base.wire.frontend.holders import (
    AcknowledgeAnswer,
    AcknowledgeRequest,
    HolderRegisterAnswer,
    HolderRegisterRequest,
    SchemaLeaseList,
    SignOffAnswer,
)

REGISTERED = ("invalid-identifier", "wrong-cluster")
STORED = ("object-locked", "outcome-unknown")
ACKNOWLEDGE = "/holders/{holder_id}/acknowledge"

router = APIRouter(prefix="/internal/v1", tags=["internal"])
public = APIRouter(prefix="/v1", tags=["nodes"])


@router.post(
    "/holders/{holder_id}/register",
    response_model=HolderRegisterAnswer,
    responses=problems(*LEADER, *BODY, *REGISTERED, *STORED, "storage-full"),
)
async def register_holder(
    state: Server,
    holder_id: str,
    query: Annotated[NoQuery, Query()],
    request: HolderRegisterRequest,
) -> Response:
    """Registers a process, before it serves its first statement. Durable when it is answered."""
    return answer(await holders.register(state, holder_id, request))


@router.put(
    ACKNOWLEDGE,
    response_model=AcknowledgeAnswer,
    responses=problems(*LEADER, *BODY, *REGISTERED, "stale-incarnation"),
)
async def acknowledge(
    state: Server, holder_id: str, query: Annotated[NoQuery, Query()], request: AcknowledgeRequest
) -> Response:
    """Renews the schema lease, and says what is still in use. One that is not newer changes
    nothing."""
    return answer(await holders.acknowledge(state, holder_id, request))


@router.delete(
    "/holders/{holder_id}",
    response_model=SignOffAnswer,
    responses=problems(
        *LEADER, "invalid-request", "invalid-identifier", "stale-incarnation", *STORED
    ),
)
async def sign_off(
    state: Server, holder_id: str, query: Annotated[SignOffQuery, Query()]
) -> Response:
    """Ends a registration, after the last statement: no schema change waits for it any more.
    Durable when it is answered."""
    return answer(await holders.sign_off(state, holder_id, query.incarnation))


@router.get(
    "/catalog/watch",
    response_class=Response,
    responses={
        200: {
            "description": "Lines as in `metasrv_base/wire/frontend/feed.py`: the parts of a "
            "`snapshot`, then an `update` for each version, `address` and `alive` in between. "
            "`goaway`: this server goes; ask another, from the version that you have.",
            "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        **problems("not-ready", "invalid-request"),
    },
)
async def watch_catalog(state: Server, query: Annotated[WatchQuery, Query()]) -> Response:
    """The catalog as a stream, from any server."""
    state.must_be_loaded()
    state.streams.must_have_room()
    lines = feed.lines(state, Start(query.from_, query.tables))
    return StreamingResponse(lines, 200, {"Cache-Control": "no-store"}, media_type=MEDIA_TYPE)


@public.get(
    "/schema-leases",
    response_model=SchemaLeaseList,
    responses=problems(*OF_LEADER, "invalid-request"),
)
async def list_schema_leases(
    state: Server, query: Annotated[SchemaLeasesQuery, Query()]
) -> Response:
    """The processes that compute statements from the catalog, by id; with `table` and `older_than`,
    exactly those that a schema change waits for."""
    return answer(await holders.leases(state, query.table, query.older_than))
