"""Events of versions that memory no longer holds, told to a watcher from the log.

A watcher in the log holds one window of it and a place of few. One that takes too long over a
window is sent away with its place in the log kept: it asks again from the version that it has.
"""

from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

from keys.catalog.log.log_window import LogWindow
from metasrv.service.events.event_filter import EventFilter
from metasrv.service.events.event_lines import EncodedVersion, position_block, reset_block
from metasrv.service.state.state import ServerState
from metasrv_base.concurrency.turns import by_turns
from metasrv_base.errors import Refused, Unavailable
from metasrv_base.wire.events.events import EventsReset

FLUSH_BYTES = 256 << 10  # above it, and at the end of a version, what waits is sent
VERSIONS_OF_A_FLUSH = 32  # also between two yields of the event loop: some ms
PIECE_BYTES = 32 << 10  # of one send: with the connection's own buffer, all that a watcher holds
WINDOW_MS_MAX = 30_000
"""For a window to be sent: 256 versions, or 16 MiB of the log."""
PAUSE_MS = 1_000  # after a refusal of the store, or while others read as much as may be
PATIENCE_MS = 60_000  # of such pauses, then another server may do better


@dataclass(slots=True)
class CatchUp:
    """A watcher below what memory holds. `position`: all events up to it were told."""

    state: ServerState
    selection: EventFilter
    position: int
    gave_up: bool = False
    """Whether the reader has to ask again, here or at another server, from `position` on."""

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yields pieces of events until memory has what follows `position`, this server ends, or
        it gives up. Where the log was compacted meanwhile: a reset, behind which it goes on."""
        if not is_behind(self.state, self.position):
            return
        if self.state.catching_up.open >= self.state.catching_up.most:
            self.gave_up = True  # others began first, since it was let in
            return
        with self.state.catching_up.counted():
            clock = self.state.clock
            moved_ms = clock.mono_ms()
            while self._is_behind and not self.gave_up:
                try:
                    window = await self.state.windows.holding(self.position + 1)
                except Refused:
                    yield self._reset()
                    return
                except Unavailable:
                    self.gave_up = clock.mono_ms() - moved_ms > PATIENCE_MS
                    if not self.state.is_stale:
                        yield position_block(self.position)
                    await self.state.rest(PAUSE_MS)
                    continue
                moved_ms = clock.mono_ms()
                while self._is_behind and window.has_update(self.position + 1):
                    for piece in pieces_of(await self._flush(window)):
                        yield piece
                    await self.state.rest(0)
                    if clock.mono_ms() - moved_ms > WINDOW_MS_MAX:
                        self.state.watchers.lost["slow"] += 1
                        self.gave_up = True
                        return
                del window  # while the next one is loaded it holds none
                moved_ms = clock.mono_ms()
                yield position_block(self.position)

    @property
    def _is_behind(self) -> bool:
        return not self.state.is_stopping and is_behind(self.state, self.position)

    def _reset(self) -> bytes:
        self.position = self.state.follower.catalog.version
        return reset_block(EventsReset(version=self.position, reason="expired"))

    async def _flush(self, window: LogWindow) -> bytes:
        """The events that are selected of some versions of *window*. They are encoded for this
        watcher alone: what all watchers share stays that of the newest versions."""
        parts: list[bytes] = []
        size, end = 0, self.position + VERSIONS_OF_A_FLUSH
        while (
            self._is_behind
            and self.position < end
            and size < FLUSH_BYTES
            and window.has_update(self.position + 1)
        ):
            before, update = window.at(self.position), window.update(self.position + 1)
            version = EncodedVersion(before, update)
            await by_turns(version.encode())
            self.position += 1
            block = version.block(self.selection)
            parts.append(block)
            size += len(block)
        return b"".join(parts)


def is_behind(state: ServerState, position: int) -> bool:
    """Whether what follows *position* is not in memory any more."""
    follower = state.follower
    return position < follower.catalog.version and follower.at(position) is None


def pieces_of(flush: bytes) -> Iterator[bytes]:
    for start in range(0, len(flush), PIECE_BYTES):
        yield flush[start : start + PIECE_BYTES]
