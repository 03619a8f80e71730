"""The newest rows of one family in memory, in the order in which they came, found by key.

Stretches of rising keys apart from all others are spans, which need no index (`sorted_spans`). Any
other row is in a dictionary: a row of it is newer than that of a span which has its key.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import DELETE, KEY, OP, VERSION, ColumnDef, file_schema
from dataplane.region.format.conforming import conformed, with_values
from dataplane.region.format.families import ROWS
from dataplane.region.format.room import LookupRoom
from dataplane.region.format.row_keys import RowKeys
from dataplane.region.memory.sorted_spans import SPAN_BYTES, SPAN_ROWS_MIN, KeySpan, SortedSpans
from metasrv_base.errors import Corrupt

_INDEX_ENTRY_BYTES = 160  # measured: slot, key object and number of one row of the index
_OLDER_VERSION_BYTES = 50  # measured: a place in the list of its key's versions, and its number
_COLUMN_BYTES = 500  # measured: array, buffers and their owners of one column of a chunk
_CHUNK_BYTES = 1_000  # measured: the rest of a chunk
_ORDER_BYTES = 48  # a place, twice, and a key of a usual length
_PART_BYTES = 1 << 20
_PARTS_COPIED = 3
"""A part that is gathered, of up to twice its size, and the one before it."""
_MERGED_AT_ONCE = 4
"""Chunks of one rank that become one of the next: a row is copied a few times, and small chunks
are few."""
_LARGE_ROWS = 512
_LARGE_BYTES = 256 << 10
"""Larger chunks stay as they came."""
_LARGE = 99


@dataclass(frozen=True, slots=True)
class VersionPosition:
    """The place of the newest version of a key."""

    row: int
    """Counted from the memtable's first."""
    version: int
    is_tombstone: bool


class _Chunk(NamedTuple):
    """Rows that stand together, from the memtable's row `start`."""

    start: int
    rows: pa.RecordBatch
    rank: int
    bytes: int


class _SortedRun(NamedTuple):
    """The newest of the rows before `end` that are in no run before it, by key."""

    end: int
    rows: pa.Table


class Memtable:
    """Rows in order of version. One thread adds, under the region's lock; a row never changes its
    place, so a reader keeps the number of rows it saw and needs no lock. A key is found in a time
    that depends neither on how many batches there are nor on how many came since."""

    def __init__(self, columns: Sequence[ColumnDef], family: int = ROWS) -> None:
        self.family = family
        self._schema = file_schema(columns)
        self._chunks: tuple[_Chunk, ...] = ()
        self._spans = SortedSpans()
        self._index: dict[bytes, int] = {}
        """The newest row of each key that is in no span, or not in a span alone."""
        self._indexed: tuple[bytes, bytes] | None = None
        """The lowest and the highest key of `_index`."""
        self._versions: dict[bytes, list[int]] = {}
        """Rows of all versions, ascending, of keys that have more than one."""
        self._runs: tuple[_SortedRun, ...] = ()
        self._chunk_bytes = self._index_bytes = self._run_bytes = 0
        self._last_version = 0
        self.bytes = 0
        """Truly taken: rows, index, and the sorted copies that scans have left."""
        self.rows = 0
        self.first_version: int | None = None
        """The lowest; None: there is nothing."""
        self.first_ms = 0
        """Wall time of the oldest rows; meaningful while there are any."""

    def add(self, rows: pa.RecordBatch, keys: RowKeys, wall_ms: int) -> None:
        """`rows`, in order of version, are as `file_schema`, or tombstones without values; `keys`
        are their keys.

        Raises Corrupt if the version does not rise above all before.
        """
        versions = rows.column(VERSION)
        first = versions[0].as_py()
        if first <= self._last_version:
            raise Corrupt(version=first, last=self._last_version)
        if self.first_version is None:
            self.first_ms, self.first_version = wall_ms, first
        self._last_version = versions[rows.num_rows - 1].as_py()
        base = self.rows
        self._append(with_values(rows, self._schema))
        for start, end in _stretches(keys):
            self._make_findable(keys.between(start, end), base + start)
        self.rows += rows.num_rows
        self._count()

    @property
    def unsorted_bytes(self) -> int:
        """The bytes of rows that are in no sorted run yet; about."""
        return max(self._chunk_bytes - self._run_bytes, 0)

    def _count(self) -> None:
        self.bytes = self._chunk_bytes + self._index_bytes + self._run_bytes

    def _append(self, rows: pa.RecordBatch) -> None:
        chunks = [*self._chunks, _chunk(self.rows, rows, 0)]
        self._chunk_bytes += chunks[-1].bytes
        while _are_due(chunks[-_MERGED_AT_ONCE:]):
            last = chunks[-_MERGED_AT_ONCE:]
            table = pa.Table.from_batches([chunk.rows for chunk in last], last[0].rows.schema)
            (whole,) = table.combine_chunks().to_batches()
            self._chunk_bytes -= sum(chunk.bytes for chunk in last)
            chunks[-_MERGED_AT_ONCE:] = [_chunk(last[0].start, whole, last[0].rank + 1)]
            self._chunk_bytes += chunks[-1].bytes
        self._chunks = tuple(chunks)

    def _make_findable(self, keys: RowKeys, base: int) -> None:
        """The keys of the rows from *base* on. They rise, if they are to be a span."""
        first, last = keys.bounds
        count = len(keys.column)
        if count >= SPAN_ROWS_MIN and keys.is_rising and self._is_apart(first, last):
            self._spans = self._spans.with_span(KeySpan(first, last, base, base + count))
            self._index_bytes += SPAN_BYTES + len(first) + len(last)
            return
        older = self._keep_older(keys, base)
        self._index.update(zip(keys.values, range(base, base + count), strict=True))
        low, high = self._indexed or (first, last)
        self._indexed = min(low, first), max(high, last)
        self._index_bytes += _bytes_of_keys(keys.column) + _INDEX_ENTRY_BYTES * count
        self._index_bytes += _OLDER_VERSION_BYTES * older

    def _is_apart(self, first: bytes, last: bytes) -> bool:
        """Whether no row has a key from *first* to *last*."""
        return not self._may_be_indexed(first, last) and self._spans.has_room(first, last)

    def _may_be_indexed(self, first: bytes, last: bytes) -> bool:
        return self._indexed is not None and first <= self._indexed[1] and self._indexed[0] <= last

    def _keep_older(self, keys: RowKeys, base: int) -> int:
        """Before the index leads to the new versions: a reader without a lock that finds one of
        them finds those before it too. Returns how many keys had one."""
        before = dict(self._spans.rows_of(keys, self._keys_of))
        if not before and not self._is_indexed(keys):
            return 0
        older = 0
        for position, key in enumerate(keys.values):
            previous = self._index.get(key, before.get(position))
            if previous is not None:
                older += 1
                if key in self._versions:
                    self._versions[key].append(base + position)
                else:
                    self._versions[key] = [previous, base + position]
        return older

    def reshape(self, columns: Sequence[ColumnDef]) -> None:
        """Batches that come from now on have these; those before read as null in new ones."""
        self._schema = file_schema(columns)

    def holds_any(self, keys: RowKeys) -> bool:
        """Whether one of *keys* has a row here. Faster than `find` of each by far."""
        if self._is_indexed(keys):
            return True
        return any(True for _ in self._spans.rows_of(keys, self._keys_of))

    def _is_indexed(self, keys: RowKeys) -> bool:
        if not self._may_be_indexed(*keys.bounds):
            return False
        return not self._index.keys().isdisjoint(keys.values)

    def _keys_of(self, span: KeySpan) -> pa.BinaryArray:
        chunk = _chunk_of(self._chunks, span.start)
        return chunk.rows.column(KEY).slice(span.start - chunk.start, span.end - span.start)

    def find(self, keys: RowKeys, rows: int) -> Sequence[VersionPosition | None]:
        """The place of the newest version of each key among the first `rows`."""
        in_spans = dict(self._spans.rows_of(keys, self._keys_of))
        # The index last: a row of it that came since has those before it in `_versions`.
        return [
            self._position(key, self._index.get(key, in_spans.get(position)), rows)
            for position, key in enumerate(keys.values)
        ]

    def _position(self, key: bytes, row: int | None, rows: int) -> VersionPosition | None:
        """Finds a version of *key* below position *rows*. *row* is the position of its newest
        version."""
        if row is not None and row >= rows:
            versions = self._versions.get(key, ())
            count = bisect_left(versions, rows)
            row = versions[count - 1] if count else None
        if row is None:
            return None
        chunk = _chunk_of(self._chunks, row)
        here, batch = row - chunk.start, chunk.rows
        is_tombstone = batch.column(OP)[here].as_py() == DELETE
        return VersionPosition(row, batch.column(VERSION)[here].as_py(), is_tombstone)

    def rows_at(self, positions: Sequence[VersionPosition], room: LookupRoom) -> pa.Table:
        """The rows themselves, in no promised order, as `file_schema`. Raises NoRoomError."""
        chunks, schema = self._chunks, self._schema
        rows_by_start: dict[int, list[int]] = {}
        chunk_by_start: dict[int, _Chunk] = {}
        for position in positions:
            chunk = _chunk_of(chunks, position.row)
            chunk_by_start[chunk.start] = chunk
            rows_by_start.setdefault(chunk.start, []).append(position.row - chunk.start)
        parts = []
        for start, places in rows_by_start.items():
            rows = chunk_by_start[start].rows
            room.take_rows(rows, places)
            parts.append(conformed(pa.Table.from_batches([rows.take(pa.array(places))]), schema))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def sorted_runs(self, rows: int) -> Sequence[pa.Table]:
        """The newest version of each key among the first `rows`, tombstones too, by key, in a few
        tables that are to be merged. They are kept, each more than twice the next: so a row is
        sorted few times, however often reads come between writes."""
        runs = [run for run in self._runs if run.end <= rows]
        is_older = len(runs) < len(self._runs)
        begin = runs[-1].end if runs else 0
        if begin < rows:
            newest = newest_by_key(pa.concat_tables(self._tables(begin, rows)))
            runs.append(_SortedRun(rows, newest))
            while len(runs) > 1 and runs[-2].rows.num_rows <= 2 * runs[-1].rows.num_rows:
                last = runs.pop()
                runs[-1] = _SortedRun(last.end, self._gathered([runs[-1].rows, last.rows]))
            if not is_older:
                self._runs = tuple(runs)
                self._run_bytes = sum(run.rows.nbytes for run in runs)
                self._count()
        return [run.rows for run in runs]

    def parts_by_key(self, *, every_version: bool) -> Iterator[pa.Table]:
        """All rows by key and newest first, or the newest version of each key, tombstones too: in
        parts of about `_PART_BYTES`. Rows that are not all in spans are copied once, whole;
        `copy_bytes` says so."""
        if not self._index:
            yield from self._spans_by_key()
            return
        rows = pa.concat_tables(self._tables(0, self.rows)).combine_chunks()
        order = key_order(rows)
        if not every_version:
            order = order.filter(is_first_of_key(rows.select([KEY]).take(order)))
        at_once = max(_PART_BYTES * rows.num_rows // max(rows.nbytes, 1), 1)
        for first in range(0, len(order), at_once):
            yield rows.take(order.slice(first, at_once))

    @property
    def columns(self) -> int:
        return len(self._schema)

    @property
    def row_bytes(self) -> int:
        """Bytes of its rows without index and sorted copies."""
        return self._chunk_bytes

    @property
    def copy_bytes(self) -> int:
        """The memory that `parts_by_key` takes: rows, their order and their keys."""
        if not self._index:
            return _PARTS_COPIED * _PART_BYTES
        return self._chunk_bytes + _ORDER_BYTES * self.rows

    def _spans_by_key(self) -> Iterator[pa.Table]:
        """All rows, where each is in a span: they are sorted as they are."""
        at_once = max(_PART_BYTES * self.rows // max(self._chunk_bytes, 1), 1)
        waiting: list[pa.Table] = []
        for span in self._spans.spans:
            for start in range(span.start, span.end, at_once):
                waiting += self._tables(start, min(start + at_once, span.end))
                if sum(map(len, waiting)) >= at_once:
                    yield pa.concat_tables(waiting).combine_chunks()
                    waiting.clear()
        if waiting:
            yield pa.concat_tables(waiting).combine_chunks()

    def _gathered(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The newest version of each key; columns may have come between two of the tables."""
        if len(tables) == 1:
            return tables[0]
        schema = self._schema
        alike = [conformed(table, schema) for table in tables]
        return newest_by_key(pa.concat_tables([schema.empty_table(), *alike]))

    def _tables(self, begin: int, end: int) -> Iterator[pa.Table]:
        schema, chunks = self._schema, self._chunks
        yield schema.empty_table()
        first = bisect_right(chunks, begin, key=_start_of) - 1
        for chunk in chunks[first:]:
            if chunk.start >= end:
                break
            skipped = max(begin - chunk.start, 0)
            rows = chunk.rows.slice(skipped, end - chunk.start - skipped)
            yield conformed(pa.Table.from_batches([rows]), schema)


def _chunk(start: int, rows: pa.RecordBatch, rank: int) -> _Chunk:
    # Arrays of nulls may share their memory, and no longer do so in a scan or a flush.
    rows_bytes = max(rows.get_total_buffer_size(), rows.nbytes)
    is_large = rows.num_rows >= _LARGE_ROWS or rows_bytes >= _LARGE_BYTES
    size = rows_bytes + _CHUNK_BYTES + _COLUMN_BYTES * rows.num_columns
    return _Chunk(start, rows, _LARGE if is_large else rank, size)


def _stretches(keys: RowKeys) -> Sequence[tuple[int, int]]:
    """Parts of the rows that were added together: those that rise one by one, if they are few."""
    count = len(keys.column)
    if count < SPAN_ROWS_MIN:
        return [(0, count)]
    runs = keys.runs
    return runs if len(runs) * SPAN_ROWS_MIN <= count else [(0, count)]


def _bytes_of_keys(keys: pa.BinaryArray) -> int:
    """The bytes of all keys: what the column takes, less its offsets."""
    key_bytes: int = keys.nbytes - 4 * (len(keys) + 1)
    return key_bytes


def _are_due(last: Sequence[_Chunk]) -> bool:
    first = last[0]
    return (
        len(last) == _MERGED_AT_ONCE
        and first.rank != _LARGE
        and all(chunk.rank == first.rank for chunk in last)
        and all(chunk.rows.schema.equals(first.rows.schema, True) for chunk in last)
    )


def _start_of(chunk: _Chunk) -> int:
    return chunk.start


def _chunk_of(chunks: Sequence[_Chunk], row: int) -> _Chunk:
    return chunks[bisect_right(chunks, row, key=_start_of) - 1]


def newest_by_key(table: pa.Table) -> pa.Table:
    """Sorted by key, with one row for each: the newest."""
    return table if table.num_rows < 2 else first_of_each_key(sorted_by_key(table))


def sorted_by_key(table: pa.Table) -> pa.Table:
    """Sorts by key and newest first."""
    return table if table.num_rows < 2 else table.take(key_order(table))


def key_order(table: pa.Table) -> pa.UInt64Array:
    """The places of the rows by key, of each key the newest first."""
    return pc.sort_indices(table, sort_keys=[(KEY, "ascending"), (VERSION, "descending")])


def first_of_each_key(table: pa.Table) -> pa.Table:
    """Keeps the first row of each key, in a table sorted by key and newest first."""
    is_first = is_first_of_key(table)
    return table if pc.all(is_first).as_py() else table.filter(is_first)


def is_first_of_key(table: pa.Table) -> pa.BooleanArray:
    """Whether each row's key is another than that of the row before it."""
    if table.num_rows == 0:
        return pa.array([], pa.bool_())
    keys = table.column(KEY).combine_chunks()
    return pa.concat_arrays([pa.array([True]), pc.not_equal(keys[1:], keys[:-1])])
