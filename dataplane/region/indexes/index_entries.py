"""Rows as the entries that an index has of them, and entries that stand in each other's way. Pure.

What the frontend does row by row is done here for whole tables: by the job that fills an index, and
by the region that looks again at what the job has made.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import KEY, OP, PUT, VERSION, ColumnDef, file_schema
from dataplane.region.format.families import ENTRY_COLUMNS, ROW
from dataplane.region.format.key_order import in_key_order
from dataplane.region.memory.memtable import sorted_by_key
from metasrv_base.errors import Refused
from metasrv_base.rows.limited import check_entry_keys
from metasrv_base.schema.entrycodec import decode_values, encode_entries
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import to_json
from metasrv_base.wire.node.offenders import (
    LISTED_CHARS_MAX,
    ROWS_NAMED_MAX,
    Duplicate,
    first_within,
    shown,
)


@dataclass(frozen=True, slots=True)
class IndexDef:
    """The facts about an index that a region needs to make its entries."""

    family: int
    columns: tuple[ColumnDef, ...]
    """Columns in the order of the entries' keys."""
    unique: bool

    @classmethod
    def of(
        cls, family: int, ids: Sequence[int], columns: Sequence[ColumnDef], *, unique: bool
    ) -> "IndexDef":
        """Builds the definition. *columns* are the table's. Raises Refused for an id that is not
        among them."""
        by_id = {column.id: column for column in columns}
        unknown = [column_id for column_id in ids if column_id not in by_id]
        if unknown or not ids:
            raise Refused("invalid-request", index=family, reason=f"no columns {unknown}")
        return cls(family, tuple(by_id[column_id] for column_id in ids), unique)

    @property
    def types(self) -> tuple[ColumnType, ...]:
        return tuple(parse_type(column.type) for column in self.columns)


def entry_keys(rows: pa.Table, index: IndexDef) -> pa.BinaryArray:
    """Returns the key of each row's entry, in the order of *rows*. These have `_key` and the
    index's columns. Raises Refused `limit-exceeded` for a key that no entry may have."""
    arrays = [whole(rows.column(column.name)) for column in index.columns]
    keys = encode_entries(index.types, arrays, whole(rows.column(KEY)), unique=index.unique)
    check_entry_keys(keys, index.family)
    return keys


def entries_of(rows: pa.Table, index: IndexDef) -> pa.Table:
    """The entries of rows (`_key`, `_version`, the index's columns) with the rows' versions, as
    `columns.file_schema` of a family of entries, by key and newest first."""
    return sorted_entries(entries_as_read(rows, index))


def entries_as_read(rows: pa.Table, index: IndexDef) -> pa.Table:
    """The same in the order of *rows*."""
    ops = pa.repeat(pa.scalar(PUT, pa.uint8()), rows.num_rows)
    columns = {
        KEY: entry_keys(rows, index),
        VERSION: rows.column(VERSION),
        OP: ops,
        ROW: rows.column(KEY),
    }
    return pa.table(columns, schema=file_schema(ENTRY_COLUMNS))


def sorted_entries(entries: pa.Table) -> pa.Table:
    """Sorts by key and newest first. A sort by key alone is faster by far, and few keys come
    twice."""
    ordered = in_key_order(entries, KEY)
    return sorted_by_key(ordered) if pc.any(_as_the_next(ordered)).as_py() else ordered


def repeated(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Entries, sorted by key through all tables, that have their key with another one. One may come
    in two tables."""
    last: list[pa.Table] = []
    for table in tables:
        joined = pa.concat_tables([*last, table])
        same = _as_the_next(joined)
        if pc.any(same).as_py():
            yield joined.filter(pc.or_(same, _shifted(same)))
        last = [joined.slice(max(joined.num_rows - 1, 0))]


def duplicates_of(
    entries: pa.Table, index: IndexDef, limit: int
) -> tuple[tuple[Duplicate, ...], int]:
    """Returns the first *limit* keys of a unique index that more than one row has, and the number
    of all such keys. The entries are sorted by key."""
    same = _as_the_next(entries)
    firsts = pc.indices_nonzero(pc.and_not(same, _shifted(same))).to_pylist()
    duplicates = []
    for first in firsts[:limit]:
        some = entries.slice(first, ROWS_NAMED_MAX)
        key = some.column(KEY)[0]
        duplicates.append(duplicate(index, key.as_py(), rows_at(some, key)))
    return tuple(first_within(duplicates, LISTED_CHARS_MAX)), len(firsts)


def rows_at(entries: pa.Table, key: pa.Scalar) -> list[bytes]:
    rows: list[bytes] = entries.filter(pc.equal(entries.column(KEY), key)).column(ROW).to_pylist()
    return rows


def duplicate(index: IndexDef, key: bytes, rows: Iterable[bytes]) -> Duplicate:
    """Describes a duplicate. *rows* are keys of two rows at least that have the entry with this
    key."""
    values = zip(index.types, decode_values(index.types, key), strict=True)
    return Duplicate(
        values=[None if value is None else shown(to_json(type, value)) for type, value in values],
        row_keys=[row.hex() for row in sorted(rows)[:ROWS_NAMED_MAX]],
    )


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array, whatever the column came in."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _as_the_next(entries: pa.Table) -> pa.BooleanArray:
    """Whether the key of each is that of the one behind it."""
    keys = whole(entries.column(KEY))
    if len(keys) < 2:
        return pa.array([False] * len(keys), pa.bool_())
    return pa.concat_arrays([pc.equal(keys[1:], keys[:-1]), pa.array([False])])


def _shifted(same: pa.BooleanArray) -> pa.BooleanArray:
    """Whether the key of each is that of the one before it."""
    if len(same) == 0:
        return same
    return pa.concat_arrays([pa.array([False]), same[:-1]])
