"""Requests that wait while a region changes its leader, instead of being sent back.

A leader that hands its region over makes writes wait until another one leads, or it goes on. A node
that is about to lead makes requests of its epoch wait until it serves. All of it is bounded: by
time, and by the number of requests. All that wait for one thing share one look at it.
"""

import asyncio
from collections.abc import Callable, Hashable

from dataplane.datanode.ports import Spawn
from metasrv_base.clock import Clock
from metasrv_base.errors import Unavailable

WAITING_MAX = 1_024
"""Requests of a node that wait at one moment; beyond it a sender is told to come again."""
LOOK_MS = 4


class RegionWaits:
    """On the event loop."""

    def __init__(self, clock: Clock, spawn: Spawn) -> None:
        self._clock, self._spawn = clock, spawn
        self._looks: dict[Hashable, asyncio.Future[None]] = {}
        self.waiting = 0

    async def until(self, key: Hashable, may_go: Callable[[], bool], until_ms: int) -> None:
        """Returns once *may_go*, or at *until_ms* of the clock: the caller then judges for itself.
        *key*: of the condition. Raises Unavailable when too many wait."""
        if may_go() or self._clock.mono_ms() >= until_ms:
            return
        if self.waiting >= WAITING_MAX:
            reason = "too many requests wait for regions that change their leaders"
            raise Unavailable(what="the node", reason=reason)
        look = self._looks.get(key)
        if look is None:
            look = self._looks[key] = asyncio.get_running_loop().create_future()
            self._spawn(self._look(key, look, may_go, until_ms))
        self.waiting += 1
        try:
            await asyncio.shield(look)
        finally:
            self.waiting -= 1

    async def _look(
        self, key: Hashable, look: asyncio.Future[None], may_go: Callable[[], bool], until_ms: int
    ) -> None:
        try:
            while not may_go() and self._clock.mono_ms() < until_ms:
                await self._clock.sleep_ms(LOOK_MS)
        finally:
            del self._looks[key]
            if not look.done():
                look.set_result(None)
