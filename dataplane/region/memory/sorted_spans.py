"""Rows in memory that stand in order of their keys, apart from all others, and need no index.

A span is a stretch of rows of a memtable whose keys rise, and between whose lowest and highest key
no other row stood when it came. Rows that come with rising keys make spans alone: a key is found by
a binary search, and an entry of an index (160 bytes, and the processor's cache missed for each) is
saved.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.row_keys import RowKeys

SPAN_ROWS_MIN = 128
"""Fewer rows are indexed one by one: spans are kept in order, so that each costs time with their
number."""
SPAN_BYTES = 300
"""Taken by a span, without its keys; measured."""


class KeySpan(NamedTuple):
    first: bytes
    """The lowest key."""
    last: bytes
    start: int
    """The row of `first`, counted from the memtable's first."""
    end: int


KeysOf = Callable[[KeySpan], pa.BinaryArray]
"""The keys of the rows of a span."""


class SortedSpans:
    """Spans that do not overlap, by key. Immutable: a reader without a lock keeps what it saw."""

    def __init__(self, spans: tuple[KeySpan, ...] = ()) -> None:
        self.spans = spans

    def __len__(self) -> int:
        return len(self.spans)

    def has_room(self, first: bytes, last: bytes) -> bool:
        """Whether no span has a key from *first* to *last*."""
        low, high = self._near(first, last)
        return low == high

    def with_span(self, span: KeySpan) -> "SortedSpans":
        position = bisect_left(self.spans, span.first, key=_first_of)
        return SortedSpans((*self.spans[:position], span, *self.spans[position:]))

    def rows_of(self, keys: RowKeys, keys_of: KeysOf) -> Iterator[tuple[int, int]]:
        """The place of each of *keys* that a span has, and its row. Each span is searched once."""
        if not self.spans or not len(keys) or self.has_room(*keys.bounds):
            return
        column, places = keys.column, None
        if not keys.is_rising:
            places = pc.array_sort_indices(column)
            column = column.take(places)
        low, high = self._near(*keys.bounds)
        cuts = _cuts(column, self.spans[low:high])
        for span, (start, end) in zip(self.spans[low:high], cuts, strict=True):
            if start == end:
                continue
            sought, there = column[start:end], keys_of(span)
            rows = pc.search_sorted(there, sought)
            is_here = pc.equal(there.take(rows), sought).to_pylist()
            for offset, (row, is_found) in enumerate(zip(rows.to_pylist(), is_here, strict=True)):
                if is_found:
                    position = start + offset
                    yield position if places is None else places[position].as_py(), span.start + row

    def _near(self, first: bytes, last: bytes) -> tuple[int, int]:
        """Places of the spans that overlap the range, both ends in it."""
        low = bisect_left(self.spans, first, key=_last_of)
        return low, max(low, bisect_right(self.spans, last, key=_first_of))


def _cuts(column: pa.BinaryArray, spans: Sequence[KeySpan]) -> Sequence[tuple[int, int]]:
    """Yields for each span the places of the sorted *column* whose keys are in its range."""
    firsts = pa.array([span.first for span in spans], pa.binary())
    lasts = pa.array([span.last for span in spans], pa.binary())
    starts = pc.search_sorted(column, firsts, side="left").to_pylist()
    ends = pc.search_sorted(column, lasts, side="right").to_pylist()
    return list(zip(starts, ends, strict=True))


def _first_of(span: KeySpan) -> bytes:
    return span.first


def _last_of(span: KeySpan) -> bytes:
    return span.last
