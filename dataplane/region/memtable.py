"""The newest rows of one family in memory: the logged batches as they are, an index by key."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from base.errors import Corrupt
from dataplane.region.columns import DELETE, KEY, OP, VERSION, ColumnDef, file_schema
from dataplane.region.conforming import conformed
from dataplane.region.families import ROWS

_INDEX_ENTRY_BYTES = 150  # measured: slot, key object and number of one row of the index
_OLDER_VERSION_BYTES = 50  # measured: a place in the list of its key's versions, and its number
_ROW_BITS = 32


@dataclass(frozen=True, slots=True)
class Position:
    """Where the newest version of a key stands."""

    batch: int
    row: int
    version: int
    is_tombstone: bool


class _Run(NamedTuple):
    """The newest rows of the batches before `end` that are in no run before it, by key."""

    end: int
    rows: pa.Table


class Memtable:
    """Batches in order of version. One thread adds, under the region's lock; batches never change,
    so a reader keeps the number of batches it saw and needs no lock. A key is found in a time that
    does not depend on how many batches there are, or came since."""

    def __init__(self, columns: Sequence[ColumnDef], family: int = ROWS) -> None:
        self.family = family
        self._schema = file_schema(columns)
        self._batches: list[tuple[int, pa.RecordBatch]] = []
        self._index: dict[bytes, int] = {}
        self._versions: dict[bytes, list[int]] = {}
        """Positions of all versions, ascending, of keys that have more than one."""
        self._runs: tuple[_Run, ...] = ()
        self.bytes = 0
        self.rows = 0
        self.first_ms = 0
        """Wall time of the oldest batch; meaningful while there are rows."""

    @property
    def batches(self) -> int:
        return len(self._batches)

    @property
    def first_version(self) -> int | None:
        """The lowest; None: there is nothing."""
        return self._batches[0][0] if self._batches else None

    def add(self, version: int, rows: pa.RecordBatch, keys: Sequence[bytes], wall_ms: int) -> None:
        """`keys` are the values of `_key`. Raises Corrupt if the version does not rise."""
        if self._batches and version <= self._batches[-1][0]:
            raise Corrupt(version=version, last=self._batches[-1][0])
        if not self._batches:
            self.first_ms = wall_ms
        base = len(self._batches) << _ROW_BITS
        self._batches.append((version, rows))
        older = self._keep_older(keys, base)
        self._index.update(zip(keys, range(base, base + len(keys)), strict=True))
        self.rows += rows.num_rows
        self.bytes += rows.nbytes + sum(map(len, keys)) + _INDEX_ENTRY_BYTES * len(keys)
        self.bytes += _OLDER_VERSION_BYTES * older

    def _keep_older(self, keys: Sequence[bytes], base: int) -> int:
        """Before the index leads to the new versions: a reader without a lock that finds one of
        them finds those before it too. Returns how many keys had one."""
        if self._index.keys().isdisjoint(keys):
            return 0
        older = 0
        for at, key in enumerate(keys, start=base):
            known = self._index.get(key)
            if known is not None:
                older += 1
                if key in self._versions:
                    self._versions[key].append(at)
                else:
                    self._versions[key] = [known, at]
        return older

    def reshape(self, columns: Sequence[ColumnDef]) -> None:
        """Batches that come from now on have these; those before read as null in new ones."""
        self._schema = file_schema(columns)

    def find(self, key: bytes, batches: int) -> Position | None:
        """Where its newest version among the first `batches` stands."""
        at = self._index.get(key)
        end = batches << _ROW_BITS
        if at is not None and at >= end:
            at = self._last_before(key, end)
        if at is None:
            return None
        return self._position(at >> _ROW_BITS, at & ((1 << _ROW_BITS) - 1))

    def _last_before(self, key: bytes, end: int) -> int | None:
        versions = self._versions.get(key, ())
        place = bisect_left(versions, end)
        return versions[place - 1] if place else None

    def _position(self, batch: int, row: int) -> Position:
        version, rows = self._batches[batch]
        return Position(batch, row, version, rows.column(OP)[row].as_py() == DELETE)

    def rows_at(self, positions: Sequence[Position]) -> pa.Table:
        """The rows themselves, in no promised order, as `file_schema`."""
        by_batch: dict[int, list[int]] = {}
        for position in positions:
            by_batch.setdefault(position.batch, []).append(position.row)
        parts = [self._taken(batch, pa.array(rows)) for batch, rows in by_batch.items()]
        return pa.concat_tables(parts) if parts else self._schema.empty_table()

    def sorted_rows(self, batches: int) -> pa.Table:
        """The newest version of each key among the first `batches`, tombstones too, by key."""
        return self._gathered(self.sorted_runs(batches))

    def sorted_runs(self, batches: int) -> Sequence[pa.Table]:
        """The same in a few tables, to be merged. They are kept, each more than twice the next: so
        a row is sorted few times, however often reads come between writes."""
        runs = [run for run in self._runs if run.end <= batches]
        is_older = len(runs) < len(self._runs)
        begin = runs[-1].end if runs else 0
        if begin < batches:
            newest = newest_by_key(pa.concat_tables(self._tables(begin, batches)))
            runs.append(_Run(batches, newest))
            while len(runs) > 1 and runs[-2].rows.num_rows <= 2 * runs[-1].rows.num_rows:
                last = runs.pop()
                runs[-1] = _Run(last.end, self._gathered([runs[-1].rows, last.rows]))
            if not is_older:
                self._runs = tuple(runs)
        return [run.rows for run in runs]

    def all_rows(self) -> pa.Table:
        """Every version of each key, tombstones too, by key and newest first."""
        return sorted_by_key(pa.concat_tables(self._tables(0, self.batches)))

    def _gathered(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The newest version of each key; columns may have come between two of the tables."""
        if len(tables) == 1:
            return tables[0]
        schema = self._schema
        alike = [conformed(table, schema) for table in tables]
        return newest_by_key(pa.concat_tables([schema.empty_table(), *alike]))

    def _tables(self, begin: int, end: int) -> Iterator[pa.Table]:
        schema = self._schema
        yield schema.empty_table()
        for version, rows in self._batches[begin:end]:
            yield _versioned(version, rows, schema)

    def _taken(self, batch: int, rows: pa.Array) -> pa.Table:
        version, whole = self._batches[batch]
        return _versioned(version, whole.take(rows), self._schema)


def _versioned(version: int, rows: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    stamps = pa.repeat(pa.scalar(version, pa.int64()), rows.num_rows)
    return conformed(pa.Table.from_batches([rows]).append_column(VERSION, stamps), schema)


def newest_by_key(table: pa.Table) -> pa.Table:
    """Sorted by key, with one row for each: the newest."""
    return first_of_each_key(sorted_by_key(table))


def sorted_by_key(table: pa.Table) -> pa.Table:
    """By key and newest first."""
    if table.num_rows < 2:
        return table
    order = [(KEY, "ascending"), (VERSION, "descending")]
    return table.take(pc.sort_indices(table, sort_keys=order))


def first_of_each_key(table: pa.Table) -> pa.Table:
    """Of a table sorted by key and newest first, the first row of each key."""
    if table.num_rows < 2:
        return table
    keys = table.column(KEY).combine_chunks()
    changes = pc.not_equal(keys[1:], keys[:-1])
    if pc.all(changes).as_py():
        return table
    return table.filter(pa.concat_arrays([pa.array([True]), changes]))
