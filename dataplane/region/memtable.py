"""The newest rows of a region in memory: the logged batches as they are, and an index by key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from base.errors import Corrupt
from dataplane.region.columns import DELETE, KEY, OP, VERSION, ColumnDef, conformed, file_schema

_INDEX_ENTRY_BYTES = 150  # measured: slot, key object and number of one row of the index
_ROW_BITS = 32


@dataclass(frozen=True, slots=True)
class Position:
    """Where the newest version of a key stands."""

    batch: int
    row: int
    version: int
    is_tombstone: bool


class Memtable:
    """Batches in order of version. One thread adds, under the region's lock; batches never change,
    so a reader keeps the number of batches it saw and needs no lock."""

    def __init__(self, columns: Sequence[ColumnDef]) -> None:
        self._schema = file_schema(columns)
        self._batches: list[tuple[int, pa.RecordBatch]] = []
        self._index: dict[bytes, int] = {}
        self._sorted: tuple[int, pa.Table] = (0, self._schema.empty_table())
        self.bytes = 0
        self.rows = 0
        self.first_ms = 0
        """Wall time of the oldest batch; meaningful while there are rows."""

    @property
    def batches(self) -> int:
        return len(self._batches)

    def add(self, version: int, rows: pa.RecordBatch, keys: Sequence[bytes], wall_ms: int) -> None:
        """`keys` are the values of `_key`. Raises Corrupt if the version does not rise."""
        if self._batches and version <= self._batches[-1][0]:
            raise Corrupt(version=version, last=self._batches[-1][0])
        if not self._batches:
            self.first_ms = wall_ms
        base = len(self._batches) << _ROW_BITS
        self._batches.append((version, rows))
        self._index.update(zip(keys, range(base, base + len(keys)), strict=True))
        self.rows += rows.num_rows
        self.bytes += rows.nbytes + sum(map(len, keys)) + _INDEX_ENTRY_BYTES * len(keys)

    def reshape(self, columns: Sequence[ColumnDef]) -> None:
        """Batches that come from now on have these; those before read as null in new ones."""
        self._schema = file_schema(columns)

    def find(self, key: bytes) -> Position | None:
        at = self._index.get(key)
        if at is None:
            return None
        batch, row = at >> _ROW_BITS, at & ((1 << _ROW_BITS) - 1)
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
        known, table = self._sorted
        if known != batches:
            table = newest_by_key(pa.concat_tables(self._tables(batches)))
            self._sorted = (batches, table)
        return table

    def all_rows(self) -> pa.Table:
        """Every version of each key, tombstones too, by key and newest first."""
        return sorted_by_key(pa.concat_tables(self._tables(self.batches)))

    def _tables(self, batches: int) -> Iterator[pa.Table]:
        schema = self._schema
        yield schema.empty_table()
        for version, rows in self._batches[:batches]:
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
