"""The gate before each step: open, unless an operator has paused all procedures."""

import asyncio

PAUSED = "all procedures are paused"


class Gate:
    """Of one term. Whoever waits here has committed its last step, and keeps its locks."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self.reason = PAUSED
        """Why it is closed, for people."""

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def close(self, reason: str | None) -> None:
        self.reason = reason or PAUSED
        self._opened.clear()

    def open(self) -> None:
        self._opened.set()

    async def opened(self) -> None:
        """Returns once it is open; perhaps it is closed again by then."""
        await self._opened.wait()
