"""The catalog's events for watchers: a watcher is no more than a position.

Fed from what this server has applied, so a watcher costs the store nothing. The bytes of a version
are shared by all watchers; one holds the piece that is on its way. A watcher that resumes at a
version that memory no longer holds is first told what follows from the log. One that falls behind
later is told so and disconnected; one that receives nothing is cut off. Nobody waits for either.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from metasrv.service.events.event_filter import EventFilter
from metasrv.service.events.event_lines import position_block, reset_block
from metasrv.service.past.catch_up import (
    FLUSH_BYTES,
    VERSIONS_OF_A_FLUSH,
    CatchUp,
    is_behind,
    pieces_of,
)
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.events.events import BEAT_MS, EventsReset
from metasrv_base.wire.http import sse

FLUSHES_PER_S = 4_000
"""To all watchers together: of a thousand each has four, so that many changes leave the leader time
for its own work."""
_ID = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class EventWatch:
    """A watcher as it begins. `reset`: why it cannot have the events after the version that it
    asked for; None: it can."""

    position: int
    selection: EventFilter
    reset: EventsReset | None = None


async def begun(
    state: ServerState, selection: EventFilter, since: int | None, last_id: str | None
) -> EventWatch:
    """A watcher that has all events up to *since*; None: up to now. *last_id* (`Last-Event-ID`)
    goes before *since*.

    A version that this server does not have is waited for, until a look at the store says that
    there is no such version. Raises Unavailable: another server may know more, and fewer watchers
    may be told old versions there.
    """
    state.must_be_loaded()
    if last_id is not None and not _ID.fullmatch(last_id):
        return _reset(state, selection, "unknown-id")
    position = since if last_id is None else int(last_id)
    follower = state.follower
    if position is None:
        return EventWatch(follower.catalog.version, selection)
    if position > follower.catalog.version and not await _comes(state, position):
        return _reset(state, selection, "ahead")
    if is_behind(state, position):
        state.catching_up.must_have_room()
        try:
            await state.old.bases.find(position)
        except Refused:
            return _reset(state, selection, "expired")
    return EventWatch(position, selection)


async def _comes(state: ServerState, version: int) -> bool:
    """Waits for *version*. False: the store does not have it."""
    began_ms, deadline_ms = state.clock.mono_ms(), state.facts.store_deadline_ms
    try:
        async with state.while_serving():
            await state.follower.wait_for(version, deadline_ms=deadline_ms)
    except Unavailable:
        heard_ms = state.follower.log.heard_at_ms
        if heard_ms is None or heard_ms <= began_ms:
            raise
        return False
    except TimeoutError as error:
        raise Unavailable("not-ready", what="this server: it ends") from error
    return True


def _reset(state: ServerState, selection: EventFilter, reason: str) -> EventWatch:
    version = state.follower.catalog.version
    reset = EventsReset.model_validate({"version": version, "reason": reason})
    return EventWatch(version, selection, reset)


async def blocks(state: ServerState, watch: EventWatch) -> AsyncGenerator[bytes]:
    """Yields pieces of events from *watch* on, until this server ends or the watcher is too far
    behind. All events of a version are sent together.

    A server that has not heard from the store for longer than a lease gives no sign of life: the
    watcher asks another one.
    """
    clock, position = state.clock, watch.position
    if watch.reset is not None:
        yield reset_block(watch.reset)
    catch_up = CatchUp(state, watch.selection, position)
    async with aclosing(catch_up.pieces()) as pieces:
        async for piece in pieces:
            yield piece
    position = catch_up.position
    if catch_up.gave_up:
        yield sse.GOAWAY
        return
    beat_due_ms, is_told = clock.mono_ms(), False
    while not state.is_stopping:
        if is_behind(state, position):
            state.watchers.lost["behind"] += 1
            version = state.follower.catalog.version
            yield reset_block(EventsReset(version=version, reason="behind"))
            return
        flush, position = await _flush(state, position, watch.selection)
        for piece in pieces_of(flush):
            yield piece
        now_ms = clock.mono_ms()
        next_ms = now_ms + 1_000 * state.watchers.open // FLUSHES_PER_S
        if position == state.follower.catalog.version:
            if now_ms >= beat_due_ms:
                beat_due_ms = now_ms + BEAT_MS
                if not is_told or not state.is_stale:
                    is_told = True
                    yield position_block(position)
            await state.newer(position, beat_due_ms - now_ms)
        await state.rest(next_ms - clock.mono_ms())
    yield sse.GOAWAY


async def _flush(state: ServerState, position: int, selection: EventFilter) -> tuple[bytes, int]:
    """The events that *selection* selects of some versions after *position*, and the last of
    these versions."""
    parts: list[bytes] = []
    size, end = 0, position + VERSIONS_OF_A_FLUSH
    while position < end and size < FLUSH_BYTES and not state.is_stopping:
        before, update = state.follower.at(position), state.follower.update(position + 1)
        if before is None or update is None:
            break
        version = state.events.version(before, update)
        if not version.is_encoded:
            await by_turns(version.encode())
        position += 1
        if block := version.block(selection):
            parts.append(block)
            size += len(block)
    return parts[0] if len(parts) == 1 else b"".join(parts), position
