"""Time is an argument. Nothing in this project reads the system clock except SystemClock."""

import time
from typing import Protocol


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the Unix epoch. For records and people; never for lease decisions."""
        ...

    def mono_ms(self) -> int:
        """Milliseconds since an arbitrary start; never goes back, and counts while suspended.

        For leases and timeouts (docs/protocols.md P4 asks for CLOCK_BOOTTIME).
        """
        ...

    async def sleep_ms(self, ms: int) -> None: ...


class SystemClock:
    """The clock of the machine."""

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    async def sleep_ms(self, ms: int) -> None:
        import asyncio  # of 10 ms, which a TAB of the command line spares

        await asyncio.sleep(ms / 1000)
