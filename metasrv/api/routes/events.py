"""/v1/procedures/{procedure}/events: follow a change without asking again and again."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from metasrv.api.documents.documented import OF_LEADER, problems
from metasrv.api.http.query import Query as NoQuery
from metasrv.api.http.request_context import Server
from metasrv.service.procedures import events, procedures
from metasrv_base.wire.http import sse

router = APIRouter(prefix="/v1/procedures", tags=["procedures"])


@router.get(
    "/{procedure}/events",
    response_class=Response,
    responses={
        200: {
            "description": "`procedure` events, each with the whole procedure as its data, then "
            "`end`. `goaway`: this server goes; ask again. `reset`: Last-Event-ID is not known.",
            "content": {sse.MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        204: {"description": "The client has seen its end (Last-Event-ID): do not ask again."},
        **problems(*OF_LEADER, "procedure-not-found", "invalid-request"),
    },
)
async def follow_procedure(
    state: Server,
    procedure: str,
    query: Annotated[NoQuery, Query()],
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """The changes of one procedure, as server-sent events, until it is over."""
    state.streams.must_have_room()
    first = await procedures.get(state, procedure)
    if first.body.done and last_event_id == events.id_of(first):
        return Response(status_code=204)
    stream = events.events(state, procedure, first, last_event_id)
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(stream, 200, headers, media_type=sse.MEDIA_TYPE)
