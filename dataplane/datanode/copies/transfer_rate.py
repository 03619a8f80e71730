"""A limit of the bytes that a node fetches in a second, shared by all its fetches."""

from dataplane.datanode.config import FETCH_BYTES_PER_S_MIN
from metasrv_base.clock import Clock


class TransferRate:
    def __init__(self, clock: Clock, bytes_per_s: int) -> None:
        """*bytes_per_s* 0: there is no limit."""
        self._clock, self._bytes_per_s = clock, bytes_per_s
        self._started_with = bytes_per_s
        self._free_ms = 0.0
        """The time at which what was spent has been earned."""

    def adjust(self, bytes_per_s: int | None) -> None:
        """Sets another rate from the next piece on. None: that of the start. A lower rate than
        FETCH_BYTES_PER_S_MIN counts as that: the leader would end a session between two pieces."""
        if bytes_per_s:
            bytes_per_s = max(FETCH_BYTES_PER_S_MIN, bytes_per_s)
        self._bytes_per_s = self._started_with if bytes_per_s is None else bytes_per_s

    async def spend(self, size: int) -> None:
        """Waits for as long as the bytes before these take at the rate."""
        if not self._bytes_per_s:
            return
        now_ms = self._clock.mono_ms()
        wait_ms = self._free_ms - now_ms
        self._free_ms = max(self._free_ms, now_ms) + size * 1_000 / self._bytes_per_s
        if wait_ms > 0:
            await self._clock.sleep_ms(int(wait_ms))
