"""Bytes that histories take, counted as they end and page by page."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from keys.model.records import ProcedureHistory, ProcedureHistoryKey
from keys.store.kv import KeyPage
from keys.store.readable import KeyRow
from keys.value import encode

PAGE_BYTES = 1 << 20  # of one page; a page of one row may be as large as a transaction
FIRST_ROWS = 8
COUNTED_ROWS_MAX = 1_000  # of a page that is only counted
ENTRY_BYTES = 420  # of a history's key, of its idempotency key, and of what etcd adds to both

History = KeyRow[ProcedureHistoryKey, ProcedureHistory]


class Due(NamedTuple):
    """A history to be deleted, without its value. `size_bytes`: as the tally counts it."""

    key: ProcedureHistoryKey
    revision: int
    size_bytes: int
    idempotency: str | None
    """Digest of its idempotency key."""
    is_early: bool
    """Whether it goes within a day of its end."""


@dataclass(slots=True)
class PageSize:
    """The number of rows that the next page asks for, so that the page has about PAGE_BYTES."""

    rows_max: int
    rows: int = FIRST_ROWS

    def learn(self, page: KeyPage) -> None:
        size = sum(len(item.value) for item in page.items)
        fitting = self.rows * PAGE_BYTES // max(size, 1)
        self.rows = max(1, min(self.rows_max, 2 * self.rows, fitting))


@dataclass(slots=True)
class HistoryTally:
    """Bytes of all histories. Those of this term are counted as they end; those of earlier terms
    by pages that somebody else reads, from the oldest on.
    """

    term: int
    counted_to: bytes | None = field(default_factory=lambda: ProcedureHistoryKey.under().start)
    """The key before which all have been counted; None: every one of them has."""
    size_bytes: int = 0
    early: int = 0
    """Histories that went within a day of their end, in this term."""
    size: PageSize = field(default_factory=lambda: PageSize(COUNTED_ROWS_MAX))

    def ended(self, history: ProcedureHistory) -> None:
        self.size_bytes += ENTRY_BYTES + len(encode(history))

    def count(self, page: KeyPage) -> None:
        """*page* begins at `counted_to`."""
        before = (item for item in page.items if item.mod_revision <= self.term)
        self.size_bytes += sum(ENTRY_BYTES + len(item.value) for item in before)
        self.counted_to = page.items[-1].key + b"\0" if page.more else None
        self.size.learn(page)

    def deleted(self, rows: Iterable[Due]) -> None:
        for row in rows:
            self.early += row.is_early
            is_counted = self.counted_to is None or bytes(row.key) < self.counted_to
            if is_counted or row.revision > self.term:
                self.size_bytes -= row.size_bytes


def size_of(row: History) -> int:
    return ENTRY_BYTES + row.size_bytes - len(bytes(row.key))
