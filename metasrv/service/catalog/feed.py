"""The catalog as a stream for whoever computes from it: a reader is no more than a position.

Fed from what this server has applied: a reader costs the store nothing, and this server a position,
the line that is on its way and the versions that come while it reads a snapshot, which may take
minutes. Who falls behind what is kept later is given a new one.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from metasrv.service.state.addresses import NodePlace
from metasrv.service.state.feed_lines import GOAWAY, Wanted, alive, moved
from metasrv.service.state.state import ServerState
from metasrv_base.wire.frontend.feed import ALIVE_MS


@dataclass(frozen=True, slots=True)
class Start:
    """The position and the tables that a reader asks for. `version`: the one that it has applied;
    None: nothing."""

    version: int | None
    table_ids: Wanted


async def lines(state: ServerState, start: Start) -> AsyncGenerator[bytes]:
    """Yields lines from *start* on until this server ends. Each line is made when the one before is
    sent."""
    with state.streams.counted(), ExitStack() as held:
        position = start.version
        sent: Mapping[str, NodePlace] = {}
        due_ms = state.clock.mono_ms()
        while not state.is_stopping:
            places = await state.addresses.places()
            if position is None or _is_behind(state, position):
                catalog = state.follower.catalog
                held.enter_context(state.follower.hold(catalog.version))
                for part in state.feed.snapshot(catalog, start.table_ids, places):
                    yield part
                    await asyncio.sleep(0)  # a large catalog is many parts, and others have work
                    if state.is_stopping:
                        break
                position = catalog.version
            else:
                for line in moved(sent, places):
                    yield line
            sent = places
            while not state.is_stopping and (
                update := await _next(state, position, start.table_ids)
            ):
                yield update
                position += 1
            held.close()
            if not _is_behind(state, position):
                now_ms = state.clock.mono_ms()
                if now_ms >= due_ms:
                    due_ms = now_ms + ALIVE_MS
                    yield _alive(state)
                await state.newer(position, due_ms - now_ms)
        yield GOAWAY


async def _next(state: ServerState, position: int, table_ids: Wanted) -> bytes | None:
    """The update after *position*, if there is one and it is kept."""
    update, after = state.follower.update(position + 1), state.follower.at(position + 1)
    if update is None or after is None:
        return None
    return await state.feed.update(update, after, table_ids)


def _is_behind(state: ServerState, position: int) -> bool:
    """Whether what follows *position* is not kept any more."""
    newest = state.follower.catalog.version
    return position < newest and state.follower.update(position + 1) is None


def _alive(state: ServerState) -> bytes:
    leader = state.leader.url if state.leader else None
    return alive(state.follower.catalog, leader, is_stale=state.is_stale)
