"""Requests for a snapshot of the catalog, on their way to the task that makes snapshots."""

import asyncio
from dataclasses import dataclass, field

from metasrv_base.errors import MetaError, Unavailable, Unknown

ANSWER_MS_MAX = 60_000
"""The time for which a request waits: a snapshot of 100,000 tables takes seconds."""
WAITING_MAX = 16  # requests that wait; one more is refused, and was not done


@dataclass(frozen=True, slots=True)
class Compacted:
    """The state of snapshots and log after a request."""

    version: int
    """Version of the newest snapshot."""
    made: bool
    """Whether this request made it; False: there was one of this version."""
    floor: int
    """The oldest version that can be read; the log has each update above it."""
    deleted: int
    """Keys of updates and older snapshots that were deleted."""


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotRequest:
    drops_history: bool
    """Whether all history is to go that nobody pins, however new it is."""
    answer: "asyncio.Future[Compacted]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def succeed(self, compacted: Compacted) -> None:
        if not self.answer.done():
            self.answer.set_result(compacted)

    def fail(self, error: MetaError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class SnapshotRequests:
    """The queue of one term."""

    def __init__(self, *, answer_ms_max: int = ANSWER_MS_MAX) -> None:
        self._answer_ms_max = answer_ms_max
        self._queue: asyncio.Queue[SnapshotRequest] = asyncio.Queue(WAITING_MAX)
        self._ended: MetaError | None = None

    async def ask(self, *, drops_history: bool) -> Compacted:
        """Returns once the snapshot is adopted and what it replaces is deleted. Raises what ended
        the work; Unavailable if too many wait; Unknown if it takes too long: it may be made yet."""
        if self._ended is not None:
            raise self._ended
        request = SnapshotRequest(drops_history)
        try:
            self._queue.put_nowait(request)
        except asyncio.QueueFull as error:
            raise Unavailable("not-ready", what="a snapshot") from error
        try:
            async with asyncio.timeout(self._answer_ms_max / 1000):
                return await request.answer
        except TimeoutError as error:
            raise Unknown(what="a snapshot") from error

    async def next(self, timeout_ms: int) -> SnapshotRequest | None:
        """The next request; None: there was none for so long."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._queue.get()
        except TimeoutError:
            return None

    def end(self, error: MetaError) -> None:
        """Fails what waits and what comes."""
        self._ended = error
        while not self._queue.empty():
            self._queue.get_nowait().fail(error)
