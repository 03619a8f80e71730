"""Memory that the regions of a node share: memtables, what is flushed, and replays.

Counted, not allocated: each holder says how much it has. Below `PRESSURE` nobody notices. Above it
the node flushes the largest regions; above `SLOW` a writer of a region that has more than its part
flushes it first; above the budget writes are refused until there is room.

Replays never wait for memtables: under pressure they write their rows to files instead. They wait
for each other before they read a segment alone; whoever reads one waits for nobody, so that they
cannot wait in a circle.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PRESSURE = 0.5
SLOW = 0.75
READING = 0.25
"""The fraction of the budget that log segments may hold while they are replayed."""
REPLAY_BYTES_MIN = 256 << 10
"""A replay that has less does not write it to a file, whatever others have."""
FLUSHES_AT_ONCE = 2
"""Each encodes a memtable: a core, and its size in memory once more."""


class MemoryBudget:
    """Safe for threads."""

    def __init__(self, bytes_max: int = 1 << 40) -> None:
        self.bytes_max = bytes_max
        self.flushes = threading.BoundedSemaphore(FLUSHES_AT_ONCE)
        self._changed = threading.Condition()
        self._held: dict[int, int] = {}
        self._next = 0
        self._reading = 0
        self.bytes = 0

    def share(self) -> "Share":
        with self._changed:
            self._next += 1
            return Share(self, self._next)

    @property
    def is_full(self) -> bool:
        return self.bytes >= self.bytes_max

    @property
    def excess(self) -> int:
        """Bytes to flush before there is no pressure; 0: there is none."""
        return max(0, self.bytes - int(PRESSURE * self.bytes_max))

    def must_yield(self, held: int) -> bool:
        """Whether a writer flushes those bytes of its region before it goes on."""
        is_slow = self.bytes >= SLOW * self.bytes_max
        return is_slow and held * max(len(self._held), 1) >= self.bytes

    def must_spill(self, held: int) -> bool:
        """Whether a replay writes those bytes to files."""
        return self.excess > 0 and held >= REPLAY_BYTES_MIN

    @contextmanager
    def reading(self, size: int) -> Iterator[None]:
        """While a segment is in memory. Waits for those who read others, unless there is none."""
        with self._changed:
            limit = READING * self.bytes_max
            self._changed.wait_for(lambda: not self._reading or self._reading + size <= limit)
            self._reading += size
            self.bytes += size
        try:
            yield
        finally:
            with self._changed:
                self._reading -= size
                self.bytes -= size
                self._changed.notify_all()

    def set(self, holder: int, size: int) -> None:
        with self._changed:
            self.bytes += size - self._held.get(holder, 0)
            if size:
                self._held[holder] = size
            else:
                self._held.pop(holder, None)


class Share:
    """The part of the budget that one holder has."""

    def __init__(self, budget: MemoryBudget, holder: int) -> None:
        self._budget = budget
        self._holder = holder

    def set(self, size: int) -> None:
        """Holds that much from now on; 0: nothing, and the share is forgotten."""
        self._budget.set(self._holder, size)
