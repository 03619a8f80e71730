"""The gate before each step: open, unless an operator has paused all procedures."""

import asyncio

PAUSED = "all procedures are paused"


class PauseGate:
    """The gate of one term that closes to pause procedures. A waiting procedure has committed
    its last step and keeps its locks."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self.reason = PAUSED
        """Reason for which it is closed, for people."""
        self._stood_ms = 0
        self._since_ms: int | None = None

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def close(self, reason: str | None, since_ms: int | None = None, stood_ms: int = 0) -> None:
        """Closes the gate. *since_ms* is the wall clock of the pause; *stood_ms* the length of all
        pauses before it."""
        self.reason = reason or PAUSED
        self._since_ms, self._stood_ms = since_ms, stood_ms
        self._opened.clear()

    def open(self, stood_ms: int = 0) -> None:
        """Opens the gate. *stood_ms* is the length of all pauses so far."""
        self._since_ms, self._stood_ms = None, stood_ms
        self._opened.set()

    def stood_ms(self, now_ms: int) -> int:
        """The length in milliseconds of all pauses of all procedures in the life of the cluster,
        until *now_ms* by the wall clock. Deadlines move by the growth of this value."""
        current_ms = 0 if self._since_ms is None else max(0, now_ms - self._since_ms)
        return self._stood_ms + current_ms

    def worked_ms(self, now_ms: int) -> int:
        """*now_ms* by a clock that stands still in a pause: what `due_ms` is compared with."""
        return now_ms - self.stood_ms(now_ms)

    async def opened(self) -> None:
        """Returns once it is open; perhaps it is closed again by then."""
        await self._opened.wait()
