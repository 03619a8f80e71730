"""A memory budget that notes what flushes and merges reserve."""

from collections.abc import Iterator
from contextlib import contextmanager

from dataplane.region.memory.budget import MemoryBudget


class WatchedBudget(MemoryBudget):
    """Has room for everything: nothing waits for memory."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[int] = []
        self.merged: list[int] = []

    @contextmanager
    def flushing(self, size: int) -> Iterator[None]:
        self.flushed.append(size)
        with super().flushing(size):
            yield

    @contextmanager
    def merging(self, size: int) -> Iterator[bool]:
        self.merged.append(size)
        with super().merging(size) as has_room:
            yield has_room
