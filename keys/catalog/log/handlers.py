"""The handlers of the catalog log: an event counts once all of them have ended, in the order of
versions."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from keys.catalog.catalog import Catalog
from keys.commit.handling import HANDLING
from keys.model.log import CatalogUpdate
from metasrv_base.clock import Clock

SLOW_MS = 1_000  # a handler that takes longer is named in the log and in metrics
STUCK_MS = 30_000  # a server whose handler takes longer is not ready
BEHIND_MAX = 1_024  # events that wait for handlers, before no more is read from the store


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """The whole catalog at one version, in place of the updates up to it."""

    catalog: Catalog

    @property
    def version(self) -> int:
        return self.catalog.version

    @property
    def at_ms(self) -> int:
        return self.catalog.at_ms


LogEvent = CatalogUpdate | SnapshotEntry
UpdateHandler = Callable[[LogEvent, int, int], Awaitable[None]]
"""Called with an event, its commit time (wall clock, ms) and its revision of the store, for each
event once and in order. It may neither commit nor wait for a version."""


class _Done:
    """An awaitable that has ended: for handlers that do all their work when they are called."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


DONE: Final = _Done()


@dataclass(frozen=True, slots=True)
class Restartable:
    """An awaitable of work that has no effect before it ends. Awaited again after it was
    cancelled, it begins again."""

    begin: Callable[[], Awaitable[None]]

    def __await__(self) -> Generator[Any, None, None]:
        return self.begin().__await__()


@dataclass(frozen=True, slots=True)
class RunningHandler:
    """A handler that has not ended yet."""

    name: str
    version: int
    since_ms: int
    """Monotonic."""


@dataclass(slots=True)
class _Handled:
    """An event on its way through the handlers."""

    event: LogEvent
    revision: int
    next: int = 0
    """Place of the handler that has not ended."""
    awaitable: Awaitable[None] | None = None
    """Returned by that handler; None: it was not called."""


class HandlerQueue:
    """Events that do not count yet. Only one task at a time runs `drain`."""

    def __init__(self, clock: Clock, counted: Callable[[LogEvent, int], None]) -> None:
        self._clock = clock
        self._counted = counted
        self._handlers: list[tuple[str, UpdateHandler]] = []
        self._waiting: deque[_Handled] = deque()
        self._is_draining = False
        self.running: RunningHandler | None = None
        self.on_slow: list[Callable[[RunningHandler], None]] = []
        """Called once for each handler that takes longer than SLOW_MS, while it runs."""

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_empty(self) -> bool:
        """Whether no handler is registered."""
        return not self._handlers

    @property
    def needs_draining(self) -> bool:
        """Whether events wait and no task drains them."""
        return bool(self._waiting) and not self._is_draining

    def register(self, name: str, handler: UpdateHandler) -> None:
        assert all(name != other for other, _ in self._handlers), f"{name!r} is registered"
        self._handlers.append((name, handler))

    def put(self, event: LogEvent, revision: int) -> None:
        """Calls the handlers of *event*, or those that do not have to wait for earlier ones. An
        event whose handlers are all done when they return counts at once."""
        if self._waiting:
            self._waiting.append(_Handled(event, revision))
            return
        for position, (_, handler) in enumerate(self._handlers):
            awaitable = handler(event, event.at_ms, revision)
            if awaitable is not DONE:
                self._waiting.append(_Handled(event, revision, position, awaitable))
                return
        self._counted(event, revision)

    async def drain(self) -> None:
        """Awaits handlers until no event waits. Raises what a handler raises: its event, and those
        behind it, never count. Returns at once if another task does it already."""
        if self._is_draining:
            return
        self._is_draining = True
        try:
            while self._waiting:
                handled = self._waiting[0]
                if handled.awaitable is not None:
                    await self._end(handled, handled.awaitable)
                if self._has_ended(handled):
                    self._waiting.popleft()
        finally:
            self._is_draining = False

    def _has_ended(self, handled: _Handled) -> bool:
        """Calls handlers from the next one on, up to one that has to be awaited; True: there is
        none, and the event counts."""
        event, revision = handled.event, handled.revision
        while handled.next < len(self._handlers):
            awaitable = self._handlers[handled.next][1](event, event.at_ms, revision)
            if awaitable is not DONE:
                handled.awaitable = awaitable
                return False
            handled.next += 1
        self._counted(event, revision)
        return True

    async def _end(self, handled: _Handled, awaitable: Awaitable[None]) -> None:
        name, _ = self._handlers[handled.next]
        running = RunningHandler(name, handled.event.version, self._clock.mono_ms())
        slow = asyncio.get_running_loop().call_later(SLOW_MS / 1000, self._tell_slow, running)
        self.running, token = running, HANDLING.set(name)
        try:
            await awaitable
        finally:
            HANDLING.reset(token)
            self.running = None
            slow.cancel()
        handled.next, handled.awaitable = handled.next + 1, None

    def _tell_slow(self, running: RunningHandler) -> None:
        for tell in self.on_slow:
            tell(running)
