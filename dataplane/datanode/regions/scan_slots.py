"""Bounds the reads that run at once, in number and in bytes, for each kind of reader.

A read holds a slot, and memory of its kind, until its reader has received the answer; a reader that
stops receiving is cut off (serving/timed_stream.py). Each kind has slots and memory of its own, so
that no kind takes those of another. Merges and flushes have a part of their own
(`region/budget.py`).

A read that stays open between two answers (a cursor) keeps its slot and its `HeldBytes` until it is
closed, whether or not anybody asks for its next page: a kind so has no more open cursors than
slots. Whoever opens one must close it at a fixed age.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from metasrv_base.concurrency.reservations import HeldBytes, Reservations
from metasrv_base.errors import Unavailable

READ_BYTES = 256 << 20


class ReaderKind(StrEnum):
    PAGE = "page"
    """Arrow with a bound of bytes: frontends."""
    STREAM = "stream"
    """Arrow without one: jobs, programs that read regions directly, and checksums."""
    JSON = "json"
    """Browsers and the command line."""
    KEYS = "keys"
    """Rows or entries by key."""


SLOTS: Mapping[ReaderKind, int] = {
    ReaderKind.PAGE: 16,
    ReaderKind.STREAM: 8,
    ReaderKind.JSON: 4,
    ReaderKind.KEYS: 64,
}
SIXTEENTHS: Mapping[ReaderKind, int] = {
    ReaderKind.PAGE: 8,
    ReaderKind.STREAM: 4,
    ReaderKind.JSON: 2,
    ReaderKind.KEYS: 2,
}
"""Shares of the node's memory for reads."""


class ScanSlots:
    def __init__(self, bytes_max: int = READ_BYTES) -> None:
        self._taken: Counter[ReaderKind] = Counter()
        self._memory = {
            kind: Reservations(f"reads ({kind})", bytes_max * SIXTEENTHS[kind] // 16)
            for kind in ReaderKind
        }

    @contextmanager
    def slot(self, kind: ReaderKind, size: int = 0) -> Iterator[HeldBytes]:
        """Holds *size* bytes too. Raises Unavailable when all slots of the kind are taken, or its
        memory is."""
        if self._taken[kind] >= SLOTS[kind]:
            reason = f"too many scans are running ({kind})"
            raise Unavailable(what="the node", reason=reason, limit=SLOTS[kind])
        with self._memory[kind].hold(size) as held:
            self._taken[kind] += 1
            try:
                yield held
            finally:
                self._taken[kind] -= 1

    @property
    def bytes(self) -> int:
        """Bytes that all kinds of scans hold at present."""
        return sum(part.bytes for part in self._memory.values())
