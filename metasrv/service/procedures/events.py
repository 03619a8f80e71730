"""Streams the changes of one procedure: each event is the procedure as it stands then.

So nothing is lost by resuming: what a client did not see is in the timeline of the next event.
"""

import re
from collections.abc import AsyncGenerator

from metasrv.service.procedures import procedures
from metasrv.service.procedures.procedures import Shown
from metasrv.service.state.state import ServerState
from metasrv_base.errors import NotLeader, Unavailable
from metasrv_base.wire.http import sse

BEAT_MS = 5_000  # of silence, then a sign of life; also how late the end of a term is seen
_ID = re.compile(r"[0-9]+\.[ -~]{1,200}|[a-z_]{1,32}")


def id_of(shown: Shown) -> str:
    """The ETag without its quotes."""
    return shown.etag.strip('"')


async def events(
    state: ServerState, procedure: str, first: Shown, last_id: str | None
) -> AsyncGenerator[bytes]:
    """Yields events from *first* on, unless that is *last_id* (`Last-Event-ID`), to the end of the
    procedure or of this server."""
    with state.streams.counted():
        if last_id is not None and not _ID.fullmatch(last_id):
            yield sse.RESET
        if last_id != id_of(first):
            yield _event(first)
        shown = first
        while not shown.body.done:
            try:
                latest = await procedures.get(state, procedure, unlike=shown.etag, wait_ms=BEAT_MS)
            except (NotLeader, Unavailable):
                yield sse.GOAWAY
                return
            if latest.etag != shown.etag:
                yield _event(latest)
            elif not state.is_stopping:
                yield sse.BEAT
            shown = latest
            if state.is_stopping and not shown.body.done:  # the wait was cut short
                yield sse.GOAWAY
                return


def _event(shown: Shown) -> bytes:
    name = "end" if shown.body.done else "procedure"
    return sse.event(name, shown.body.model_dump_json(by_alias=True), id_of(shown))
