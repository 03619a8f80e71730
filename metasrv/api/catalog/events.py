"""/v1/events: the catalog as a stream of typed events, from any server."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from starlette.types import Receive, Scope, Send

from metasrv.api.documents.documented import QUERY, problems
from metasrv.api.http.query import EventsQuery
from metasrv.api.http.request_context import Server
from metasrv.service.catalog.event_stream import EventWatch, begun, blocks
from metasrv.service.events.event_filter import EventFilter
from metasrv.service.state.state import ServerState
from metasrv_base.wire.events.events import VersionEvents
from metasrv_base.wire.http import sse
from serving.timed_stream import TimedStream

STALLED_S = 20.0
"""Seconds in which a watcher must receive a piece of events, 32 KiB or less."""

router = APIRouter(prefix="/v1", tags=["catalogs"])


class WatcherStream(TimedStream):
    """The events of one watcher. It takes its place when its first byte is due: where all are
    taken, Unavailable."""

    media_type = sse.MEDIA_TYPE

    def __init__(self, state: ServerState, watch: EventWatch) -> None:
        headers = {"Cache-Control": "no-store"}
        super().__init__(blocks(state, watch), sse.MEDIA_TYPE, STALLED_S, headers)
        self._places = state.watchers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._places.must_have_room()
        with self._places.counted():
            await super().__call__(scope, receive, send)

    def was_cut(self) -> None:
        self._places.lost["stalled"] += 1


@router.get(
    "/events",
    status_code=200,
    response_class=WatcherStream,
    responses={
        200: {
            "model": VersionEvents,
            "description": "Server-sent events. `version`: all events of one version of the "
            "catalog, with the version as `id`. `reset`: events up to its `version` cannot be "
            "told; read the catalog at that version or a newer one, and go on from there. "
            "`goaway`: this server goes; ask again with `Last-Event-ID`. A block with an `id` "
            "alone: nothing else is to be told up to that version.",
        },
        **problems("not-ready", "stale", *QUERY),
    },
)
async def follow_events(
    state: Server,
    query: Annotated[EventsQuery, Query()],
    last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> Response:
    """Follows what changes in the catalog: typed events, all those of one version together."""
    selection = EventFilter.of(query.catalog, query.schema_name, query.table, query.table_id)
    state.watchers.must_have_room()
    return WatcherStream(state, await begun(state, selection, query.since, last_event_id))
