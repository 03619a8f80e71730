"""A page of rows by an index whose entries are in many regions: which region is asked for how many,
and which rows are certain to be the next. Pure.

A region is asked for its share of the page first, and for twice as many each time its rows have run
out while those of others wait. So a page takes few rows that it does not show.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

PAGE_BYTES_MAX = 16 << 20
"""The largest page, in bytes. A page may exceed it by what a region sends at once: a MiB, or one
row."""
PAGE_ROWS_MAX = 2_000
"""The most rows of a page by an index. Each of its rows is looked up."""
SHARE_ROWS_MIN = 16
SHARE_BYTES_MIN = 256 << 10


@dataclass(slots=True)
class PageShare:
    """One region's share of a page: the rows to ask it for, and those that the page may take."""

    number: int
    key: bytes
    """The entry from which the region is asked on."""
    rows: int
    bytes_max: int
    waiting: pa.Table | None = None
    """Rows in the order of the entries; None: the region must be asked."""
    is_last: bool = False
    """Whether nothing stands behind what waits."""


@dataclass
class EntryMerge:
    """`wanted`, `filled` for each of them, `take`, until nothing is wanted."""

    numbers: Iterable[int]
    first: bytes
    limit: int
    by: str = "_entry"
    """The column of an answer that has its order: `_entry` of an index, `_key` of rows."""
    taken: list[pa.Table] = field(default_factory=list)
    """Rows that the page shows, in order."""
    _shares: list[PageShare] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        numbers = list(self.numbers)
        self.limit = min(self.limit, PAGE_ROWS_MAX)
        rows = max(SHARE_ROWS_MIN, -(-self.limit // len(numbers)))
        size = max(SHARE_BYTES_MIN, PAGE_BYTES_MAX // len(numbers))
        self._shares = [
            PageShare(number, self.first, min(rows, self.limit), size) for number in numbers
        ]

    def wanted(self) -> Sequence[PageShare]:
        """The shares of regions whose rows the page needs before it can go on; none: it is
        complete."""
        if self._rows >= self.limit or self._bytes >= PAGE_BYTES_MAX:
            return ()
        return [share for share in self._shares if share.waiting is None and not share.is_last]

    def filled(self, share: PageShare, rows: pa.Table, *, is_last: bool) -> None:
        """Adds the rows that a region answered."""
        share.is_last = is_last
        if rows.num_rows:
            share.waiting = rows.replace_schema_metadata(None)
            share.key = rows.column(self.by)[-1].as_py() + b"\x00"
            share.rows = min(2 * share.rows, self.limit)
            share.bytes_max = min(2 * share.bytes_max, PAGE_BYTES_MAX)

    def take(self) -> None:
        """Takes waiting rows up to the lowest of the last entries behind which a region may have
        more."""
        ends = [share.key for share in self._shares if not share.is_last]
        end = min(ends, default=None)
        parts = []
        for share in self._shares:
            if share.waiting is None:
                continue
            keys = share.waiting.column(self.by)
            count = len(keys) if end is None else pc.sum(pc.less(keys, end)).as_py()
            parts.append(share.waiting.slice(0, count))
            share.waiting = share.waiting.slice(count) if count < len(keys) else None
        if not parts:
            return
        rows = pa.concat_tables(parts).combine_chunks()
        rows = rows.take(pc.sort_indices(rows.column(self.by)))
        self.taken.append(rows.slice(0, self.limit - self._rows))
        self._rows += rows.num_rows
        self._bytes += rows.nbytes

    @property
    def following(self) -> bytes | None:
        """The entry at which the next page begins; None: there is none."""
        is_cut = self._rows > self.limit
        is_over = all(share.is_last and share.waiting is None for share in self._shares)
        shown = [part for part in self.taken if part.num_rows]
        if not shown or (is_over and not is_cut):
            return None
        last: bytes = shown[-1].column(self.by)[-1].as_py()
        return last + b"\x00"
