"""A body that comes piece by piece, in order, over a network that may break it off."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx

from tests.sim.cluster.message_fates import Fate, Weather
from tests.sim.loop import SimLoop, in_world

HELD_MS = 200
"""A link that is cut keeps what is on its way, for so long at a time."""
BREAKS = 0.01
"""The chance of a connection to break with a piece, while it storms."""


@dataclass(eq=False)
class Flow(httpx.AsyncByteStream):
    """The stream that the client of one request reads. Its server puts pieces in."""

    loop: SimLoop
    weather: Weather
    source: str
    """The process that reads, of the loop."""
    target: str
    """The process that answers."""
    hosts: tuple[str, str]
    """From where to where pieces travel."""
    hang_up: Callable[[], None]
    """Tells the server that nobody reads any more."""
    is_over: bool = False
    _on_way: deque[bytes | None] = field(default_factory=deque)
    _here: deque[bytes | httpx.RequestError | None] = field(default_factory=deque)
    _waiting: "asyncio.Future[None] | None" = None

    def put(self, piece: bytes | None) -> None:
        """None: it was the last."""
        self._on_way.append(piece)
        in_world(self.loop, self.weather.way_ms(Fate.FINE), self._arrive)

    def fail(self) -> None:
        """The connection is reset."""
        self._take(httpx.ReadError("reset"))

    def _arrive(self) -> None:
        """The first that is on its way: pieces stay in order, however long each takes."""
        if self.is_over or not self._on_way:
            return
        if self.weather.is_cut(*self.hosts):
            in_world(self.loop, HELD_MS, self._arrive)
            return
        if self.weather.random.random() < BREAKS * self.weather.storm:
            self.weather.sometimes["a stream broke"] += 1
            self.fail()
            self.close()
            return
        self._take(self._on_way.popleft())

    def _take(self, piece: bytes | httpx.RequestError | None) -> None:
        self._here.append(piece)
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            while self._here:
                piece = self._here.popleft()
                if isinstance(piece, httpx.RequestError):
                    raise piece
                if piece is None:
                    return
                yield piece
            self._waiting = self.loop.create_future()
            await self._waiting

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """The server hears of it a little later."""
        if not self.is_over:
            self.is_over = True
            in_world(self.loop, self.weather.way_ms(Fate.FINE), self.hang_up)
