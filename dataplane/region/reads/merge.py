"""Merges sorted sources into the live rows, a window of keys at a time.

A window ends at the lowest of the last keys that are in memory, so every source has shown all its
rows up to there. Memory: what is decoded of each source whose range the window
touches.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import DELETE, KEY, OP, VERSION
from dataplane.region.format.key_range import key_after, rows_below
from dataplane.region.memory.memtable import (
    first_of_each_key,
    is_first_of_key,
    key_order,
    sorted_by_key,
)


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Tables sorted by key and newest first, none before `min_key`. Opened when it is needed."""

    min_key: bytes
    open: Callable[[], Iterator[pa.Table]]


def merge_live(sources: Sequence[MergeSource]) -> Iterator[pa.Table]:
    """The newest row of each key, without tombstones, in order of key."""
    return filter(_has_rows, map(_live_of, _windows(sources)))


def without_tombstones(rows: pa.Table) -> pa.Table:
    """The same table if it has none."""
    if rows.num_rows == 1:  # of a read by key: a mask and a filter take longer than to find it
        return rows.slice(0, rows.column(OP)[0].as_py() != DELETE)
    is_put = _is_put(rows)
    return rows if pc.all(is_put).as_py() else rows.filter(is_put)


def merge_newest(sources: Sequence[MergeSource]) -> Iterator[pa.Table]:
    """The newest row of each key, tombstones too, in order of key."""
    return map(first_of_each_key, merge_versions(sources))


def merge_versions(sources: Sequence[MergeSource]) -> Iterator[pa.Table]:
    """Every row, by key and newest first. A table holds all rows of each key that it has."""
    return map(_sorted, _windows(sources))


def _windows(sources: Sequence[MergeSource]) -> Iterator[list[pa.Table]]:
    """The rows of each window, a table of each source that has any. None is kept here: a table
    holds all that was decoded with it, and would stand beside the next window."""
    waiting = sorted(sources, key=lambda source: source.min_key, reverse=True)
    runs: list[_SourceRun] = []
    while True:
        runs = [run for run in runs if not run.is_spent]
        _admit(waiting, runs)
        if not runs:
            return
        boundary = min(run.last_key for run in runs)
        yield list(filter(_has_rows, (run.take_through(boundary) for run in runs)))


def _sorted(parts: list[pa.Table]) -> pa.Table:
    return parts[0] if len(parts) == 1 else sorted_by_key(pa.concat_tables(parts))


def _live_of(parts: list[pa.Table]) -> pa.Table:
    """The live rows of a window. They are chosen by their keys before they are copied, once."""
    rows = pa.concat_tables(parts)
    heads = rows.select([KEY, VERSION, OP])
    if len(parts) > 1:
        order = key_order(heads)
        heads = heads.take(order)
    is_live = pc.and_(is_first_of_key(heads), _is_put(heads))
    all_live = pc.all(is_live).as_py()
    if len(parts) == 1:
        return rows if all_live else rows.filter(is_live)
    return rows.take(order if all_live else order.filter(is_live))


def _is_put(rows: pa.Table) -> pa.BooleanArray:
    return pc.not_equal(rows.column(OP).combine_chunks(), pa.scalar(DELETE, pa.uint8()))


def _has_rows(table: pa.Table) -> bool:
    return bool(table.num_rows)


class _SourceRun:
    """A source that is being read."""

    def __init__(self, source: MergeSource) -> None:
        self._tables = source.open()
        self._table = next((table for table in self._tables if table.num_rows), None)

    @property
    def is_spent(self) -> bool:
        return self._table is None

    @property
    def last_key(self) -> bytes:
        assert self._table is not None
        key: bytes = self._table.column(KEY)[self._table.num_rows - 1].as_py()
        return key

    def take_through(self, boundary: bytes) -> pa.Table:
        """Removes and returns the rows up to and with `boundary`.

        Where the boundary's own key goes on in the next tables, those are older rows of it.
        """
        slices: list[pa.Table] = []
        rest = self._table
        assert rest is not None
        while rest is not None:
            count = rows_below(rest, key_after(boundary))
            slices.append(rest.slice(0, count))
            rest = rest.slice(count)
            if rest.num_rows:
                break
            rest = next(self._tables, None)
        self._table = rest
        return slices[0] if len(slices) == 1 else pa.concat_tables(slices)


def _admit(waiting: list[MergeSource], runs: list[_SourceRun]) -> None:
    """Opens the sources that can have rows in the next window."""
    while waiting:
        boundary = min((run.last_key for run in runs), default=None)
        if boundary is not None and waiting[-1].min_key > boundary:
            return
        run = _SourceRun(waiting.pop())
        if not run.is_spent:
            runs.append(run)
