"""Plans the change of an index when rows change: entries put and removed, and their conditions.
Pure.

A unique key is checked where it is written: the entry must be absent, or the row's own, or one that
the same statement removes (two rows may exchange their values). A unique key that leads to another
row is not removed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.frontend.catalog.schema import StoredIndex
from dataplane.frontend.planning.cases import Cases
from metasrv_base.elements.graph import Act
from metasrv_base.errors import Conflict
from metasrv_base.rows.limited import check_entry_keys, fit_entry_keys
from metasrv_base.schema.entrycodec import encode_entries
from metasrv_base.wire.node.batches import ABSENT, OP_DELETE, OP_PUT

ShowKeys = Callable[[Sequence[bytes]], object]


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry as it was read."""

    version: int
    row: bytes
    """The key of the row that it leads to."""


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The change of one index, for the rows of a statement in one region."""

    index: StoredIndex
    rows: pa.BinaryArray
    """Keys of all rows given."""
    before: pa.BinaryArray | None
    """Keys of the entries that the old rows have, if they were read."""
    after: pa.BinaryArray | None
    """Keys of the entries that the new rows have; None: there are no new rows."""
    removes: pa.BooleanArray
    puts: pa.BooleanArray
    checks: pa.BooleanArray

    @classmethod
    def of(
        cls,
        index: StoredIndex,
        cases: Cases,
        rows: pa.BinaryArray,
        old: Mapping[int, pa.Array] | None,
        new: Mapping[int, pa.Array] | None,
    ) -> "IndexChange":
        """Computes the change. *old* and *new* are columns by id. Raises Refused `limit-exceeded`
        for an entry's key."""
        before = None if old is None else _keys(index, old, rows)
        after = None if new is None else _keys(index, new, rows)
        touched = pa.repeat(False, len(rows))
        if before is not None and after is not None:
            touched = pc.not_equal(before, after)
        masks = [cases.where(index.does, touched, act) for act in (Act.REMOVE, Act.PUT, Act.CHECK)]
        removes, puts, checks = masks
        if before is not None:
            removes = pc.and_(removes, fit_entry_keys(before))
        if after is not None:
            check_entry_keys(after.filter(puts), index.name)
        return cls(index, rows, before, after, removes, puts, checks)

    @property
    def removed(self) -> list[tuple[bytes, bytes]]:
        """Keys of entries, and of the rows whose they are."""
        return [] if self.before is None else self._pairs(self.before, self.removes)

    @property
    def put(self) -> list[tuple[bytes, bytes]]:
        return [] if self.after is None else self._pairs(self.after, self.puts)

    def _pairs(self, keys: pa.BinaryArray, mask: pa.BooleanArray) -> list[tuple[bytes, bytes]]:
        columns = (keys.filter(mask).to_pylist(), self.rows.filter(mask).to_pylist())
        return list(zip(*columns, strict=True))

    def batches(
        self, entries: Mapping[bytes, ReadEntry], show: ShowKeys
    ) -> Iterator[pa.RecordBatch]:
        """Yields batches for the region. Raises Conflict `index-not-unique`."""
        yield from self._unique(entries, show) if self.index.unique else self._plain()

    def _plain(self) -> Iterator[pa.RecordBatch]:
        """The row's key is in each: they are the row's own, whatever is there."""
        if self.after is not None:
            keys = self.after.filter(self.puts)
            yield self._batch(OP_PUT, keys, self.rows.filter(self.puts))
        if self.before is not None:
            keys = self.before.filter(self.removes)
            if self.after is not None:
                keys = keys.filter(pc.invert(pc.is_in(keys, self.after.filter(self.puts))))
            yield self._batch(OP_DELETE, keys)

    def _unique(
        self, entries: Mapping[bytes, ReadEntry], show: ShowKeys
    ) -> Iterator[pa.RecordBatch]:
        freed = dict(_freed(self.removed, entries))
        taken: dict[bytes, tuple[bytes, int | None]] = {}
        failed: list[bytes] = []
        checked = self.checks.filter(self.puts).to_pylist()
        for (key, row), check in zip(self.put, checked, strict=True):
            entry = entries.get(key)
            is_free = key in freed or entry is None or entry.row == row
            if check and (key in taken or not is_free):
                failed.append(row)
            version = freed.pop(key, ABSENT if entry is None else entry.version)
            taken[key] = (row, version if check else None)
        if failed:
            reason = "another row has the same values"
            raise Conflict(
                "index-not-unique", name=self.index.name, reason=reason, keys=show(failed)
            )
        rows, versions = zip(*taken.values(), strict=True) if taken else ((), ())
        yield self._batch(OP_PUT, list(taken), rows, versions)
        yield self._batch(OP_DELETE, list(freed), None, list(freed.values()))

    def _batch(
        self,
        op: int,
        keys: pa.BinaryArray | Sequence[bytes],
        rows: pa.BinaryArray | Sequence[bytes] | None = None,
        versions: Sequence[int | None] | None = None,
    ) -> pa.RecordBatch:
        count = len(keys)
        columns = {
            "_family": pa.repeat(pa.scalar(self.index.id, pa.int32()), count),
            "_key": pa.array(keys, pa.binary()),
            "_op": pa.repeat(pa.scalar(op, pa.uint8()), count),
            "_expect": pa.nulls(count, pa.int64())
            if versions is None
            else pa.array(versions, pa.int64()),
            "_row": pa.nulls(count, pa.binary()) if rows is None else pa.array(rows, pa.binary()),
        }
        return pa.RecordBatch.from_pydict(columns)


def _freed(
    removed: Sequence[tuple[bytes, bytes]], entries: Mapping[bytes, ReadEntry]
) -> Iterator[tuple[bytes, int]]:
    """Entries that go, with the versions they have; where none is, a tombstone still comes."""
    for key, row in removed:
        entry = entries.get(key)
        if entry is None:
            yield key, ABSENT
        elif entry.row == row:
            yield key, entry.version


def _keys(
    index: StoredIndex, columns: Mapping[int, pa.Array], rows: pa.BinaryArray
) -> pa.BinaryArray:
    arrays = [columns[column.id] for column in index.columns]
    return encode_entries(index.types, arrays, rows, unique=index.unique)
