"""A client that writes and writes while nodes die, and remembers everything it was told."""

import asyncio
from dataclasses import dataclass, field

from metasrv.sdk.rows.table import AsyncTable
from metasrv_base.clock import Clock
from metasrv_base.errors import MetaError

ROWS = 20  # per statement, spread over the regions by the hash of their ids
PAUSE_MS = 20


@dataclass(slots=True)
class Writer:
    """Inserts rows with ids 0, 1, 2, ... and notes which were acknowledged, and how long it had to
    wait for an acknowledgement at most."""

    table: AsyncTable
    clock: Clock
    acknowledged: set[int] = field(default_factory=set)
    in_doubt: set[int] = field(default_factory=set)
    """Rows sent, and neither confirmed nor refused for certain."""
    longest_wait_ms: int = 0
    _stop: bool = False
    _next: int = 0

    def stop(self) -> None:
        self._stop = True

    async def run(self) -> None:
        while not self._stop:
            ids = range(self._next, self._next + ROWS)
            self._next += ROWS
            before = self.clock.mono_ms()
            try:
                await self.table.insert([{"id": id, "note": f"row {id}"} for id in ids])
            except MetaError:
                self.in_doubt.update(ids)
            else:
                self.acknowledged.update(ids)
            self.longest_wait_ms = max(self.longest_wait_ms, self.clock.mono_ms() - before)
            await self.clock.sleep_ms(PAUSE_MS)

    async def written(self, count: int, *, within_s: float) -> None:
        """Waits until *count* more rows are acknowledged. Raises TimeoutError."""
        target = len(self.acknowledged) + count
        async with asyncio.timeout(within_s):
            while len(self.acknowledged) < target:
                await self.clock.sleep_ms(PAUSE_MS)
