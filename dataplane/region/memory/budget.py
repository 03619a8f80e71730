"""Memory that the regions of a node share: memtables, what is flushed, and replays.

Counted, not allocated: each holder says how much it has. Below `PRESSURE` nobody notices. Above it
the node flushes the largest regions; above `SLOW` a writer of a region that has more than its part
flushes it first; above what is left to flushes and merges writes are refused until there is room.

Replays cannot wait for each other in a circle. There are two waits, and they are ordered: a replay
waits for room to read a segment while it holds nothing that another waits for (`reading` is entered
with no lock, and no replay waits for memtables: under pressure it writes its rows to files
instead); inside of it, it waits for a flush at most (`flushing`), whose holders wait for nobody but
the disk. The first reader never waits, so one goes on at any time.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PRESSURE = 0.5
SLOW = 0.75
READING = 0.25
"""The fraction of the budget that log segments may hold while they are replayed."""
READING_TIMES = 2
"""The memory that a segment takes while it is replayed, by its bytes: its records are objects, and
those that are joined stand there twice. With it and the memtable 1.2 bytes are counted for each
that the process takes (`tests/dataplane/region/held_memory.py`)."""
REPLAY_BYTES_MIN = 256 << 10
"""A replay that has less does not write it to a file, whatever others have."""
STATEMENTS = 0.125
"""The fraction of the budget that statements may hold which are remembered."""
SPILL = 0.625
"""The fraction above which replays write whatever rows they have to files: the rest is for segments
that are read, and for statements."""
FLUSHES_AT_ONCE = 2
"""The most flushes at a time. Each encodes a memtable, which takes a core and its size in memory
once more."""
KEPT = 0.5
"""The fraction that files of regions in memory may hold. No flush frees them: the rest of the
budget is what other regions have, and their pressure is reckoned by that."""
WORK = 0.125
"""The fraction that writers leave to flushes and merges. A second flush waits for the first where
both would have more; the first never waits."""
MERGE = 0.5
"""The fraction that a merge may have which has a choice. While it has more than `WORK`, writers and
replays have so much less, and flush earlier."""


class MemoryBudget:
    """Safe for threads."""

    def __init__(self, bytes_max: int = 1 << 40) -> None:
        self.bytes_max = bytes_max
        self._changed = threading.Condition()
        self._held: dict[int, int] = {}
        self._next = 0
        self._reading = 0
        self._flushes = 0
        self._flush_bytes = 0
        self._merge_bytes = 0
        self.bytes = 0
        """Bytes of rows, statements, segments that are read, and kept files."""
        self.statement_bytes = 0
        self.kept_bytes = 0
        """Bytes of files in memory."""

    def share(self) -> "BudgetShare":
        with self._changed:
            self._next += 1
            return BudgetShare(self, self._next)

    def statement_share(self) -> "StatementShare":
        return StatementShare(self)

    def kept_share(self) -> "KeptShare":
        return KeptShare(self)

    @property
    def kept_max(self) -> int:
        return int(KEPT * self.bytes_max)

    @property
    def is_full(self) -> bool:
        """Whether writes are refused."""
        work = max(self.work_bytes, int(WORK * self.bytes_max))
        return self.bytes + work >= self.bytes_max

    @property
    def statements_max(self) -> int:
        return int(STATEMENTS * self.bytes_max)

    @property
    def remembers_more(self) -> bool:
        """Whether there is memory for further statements. None is forgotten to make room."""
        return self.statement_bytes < self.statements_max

    @property
    def excess(self) -> int:
        """Bytes to flush before there is no pressure; 0: there is none."""
        return max(0, self._moving_bytes - int(PRESSURE * self._for_rows))

    @property
    def _moving_bytes(self) -> int:
        """Bytes that flushes and the end of replays free."""
        return self.bytes - self.kept_bytes

    @property
    def _for_rows(self) -> int:
        """The budget without kept files, and without what merges have beyond `WORK`."""
        merges = max(0, self._merge_bytes - int(WORK * self.bytes_max))
        return max(0, self.bytes_max - merges - self.kept_bytes)

    def is_to_flush(self, held: int) -> bool:
        """Whether a writer flushes those bytes of its region before it goes on."""
        moving = self._moving_bytes
        return moving >= SLOW * self._for_rows and held * max(len(self._held), 1) >= moving

    @contextmanager
    def reading(self, segment_bytes: int) -> Iterator[None]:
        """Reserves memory for a segment within the block. Waits for those who read others, unless
        there is none."""
        size = READING_TIMES * segment_bytes
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

    @contextmanager
    def flushing(self, size: int) -> Iterator[None]:
        """Reserves *size* bytes that are copied into a file within the block. Waits for other
        flushes, never for writers."""
        with self._changed:
            self._changed.wait_for(lambda: self._may_flush(size))
            self._flushes += 1
            self._flush_bytes += size
        try:
            yield
        finally:
            with self._changed:
                self._flushes -= 1
                self._flush_bytes -= size
                self._changed.notify_all()

    def _may_flush(self, size: int) -> bool:
        if self._flushes == 0:
            return True
        fits = self._flush_bytes + size <= WORK * self.bytes_max
        return fits and self._flushes < FLUSHES_AT_ONCE

    @property
    def merge_max(self) -> int:
        return int(MERGE * self.bytes_max)

    @contextmanager
    def merging(self, size: int) -> Iterator[bool]:
        """Reserves *size* bytes for a merge, or for a look at all entries of a unique index, within
        the block, and waits for nothing. False: with nothing reserved, they do not fit beside what
        is held; what is larger than all room is served alone, where there is no pressure."""
        with self._changed:
            is_alone = not self._merge_bytes and not self.excess
            has_room = is_alone or self.bytes + self.work_bytes + size <= self.bytes_max
            reserved = size if has_room else 0
            self._merge_bytes += reserved
        try:
            yield has_room
        finally:
            with self._changed:
                self._merge_bytes -= reserved

    @property
    def work_bytes(self) -> int:
        """Bytes that flushes and merges hold."""
        return self._flush_bytes + self._merge_bytes

    def set(self, holder: int, size: int) -> None:
        with self._changed:
            self._set(holder, size)

    def claim(self, holder: int, size: int) -> bool:
        """Reserves memory for the rows of a replay, as `set`. False, with nothing changed: it must
        write them to files, under pressure unless they are few, and above `SPILL` whatever they
        are, since many replays have few each."""
        with self._changed:
            more = size - self._held.get(holder, 0)
            rows = self._moving_bytes + more - self._reading - self.statement_bytes
            is_few = size < REPLAY_BYTES_MIN
            if rows > (SPILL if is_few else PRESSURE) * self._for_rows:
                return False
            self._set(holder, size)
            return True

    def _set(self, holder: int, size: int) -> None:
        self.bytes += size - self._held.get(holder, 0)
        if size:
            self._held[holder] = size
        else:
            self._held.pop(holder, None)

    def add_kept(self, size: int) -> None:
        with self._changed:
            self.bytes += size
            self.kept_bytes += size

    def add_statements(self, size: int) -> None:
        with self._changed:
            self.bytes += size
            self.statement_bytes += size


class StatementShare:
    """The part of the budget that the remembered statements of one region have. A flush does not
    free it, so that it does not count where those are chosen that must flush."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = 0

    def set(self, size: int) -> None:
        if size != self._size:
            self._budget.add_statements(size - self._size)
            self._size = size


class KeptShare:
    """The part of the budget that the files in memory of one region have. Not safe for threads."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._size = 0

    def set(self, size: int) -> None:
        if size != self._size:
            self._budget.add_kept(size - self._size)
            self._size = size


class BudgetShare:
    """The part of the budget that one holder has."""

    def __init__(self, budget: MemoryBudget, holder: int) -> None:
        self._budget = budget
        self._holder = holder

    def set(self, size: int) -> None:
        """Holds that much from now on; 0: nothing, and the share is forgotten."""
        self._budget.set(self._holder, size)

    def claim(self, size: int) -> bool:
        """Reserves memory, as `MemoryBudget.claim`."""
        return self._budget.claim(self._holder, size)
