"""Families: the table's rows, and one for the entries of each index, in one region.

A batch says with each row where it belongs, by `_family`, a nullable int32; where the column is
missing or null, to the table's rows. An entry's only value is `_row`, the key of its row. In the
log and in memory each family of a batch is a slice of it; without entries a batch has neither
column, and is what it was before there were families.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from base.errors import Corrupt
from dataplane.region.columns import KEY, OP, ColumnDef, log_schema, value_fields

ROWS = 0
FAMILY = "_family"
ROW = "_row"
ENTRY_COLUMNS = (ColumnDef(id=0, type="binary", nullable=False),)
"""Of every index; its name is `_row`."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one batch has of one family, as `columns.log_schema` of the family's columns."""

    family: int
    rows: pa.RecordBatch
    keys: Sequence[bytes]


def columns_in(family: int, columns: Sequence[ColumnDef]) -> Sequence[ColumnDef]:
    """`columns` are the table's."""
    return columns if family == ROWS else ENTRY_COLUMNS


def families_of(batch: pa.RecordBatch) -> pa.Array:
    """For each row of a batch, of a client or of the log."""
    if FAMILY not in batch.schema.names:
        return pa.repeat(pa.scalar(ROWS, pa.int32()), batch.num_rows)
    return pc.fill_null(batch.column(FAMILY), ROWS)


def sliced(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """A batch whose families rise, by family: each slice shares its memory. Raises Corrupt if they
    do not."""
    if FAMILY not in batch.schema.names:
        yield ROWS, batch
        return
    families = families_of(batch).to_numpy(zero_copy_only=False)
    starts = np.flatnonzero(np.diff(families, prepend=families[:1] - 1)).tolist()
    found = [int(families[at]) for at in starts]
    if found != sorted(set(found)):
        raise Corrupt(families=found, reason="the families of a logged batch do not rise")
    for family, start, end in zip(found, starts, [*starts[1:], len(families)], strict=True):
        names = [name for name in batch.schema.names if _is_of(name, family)]
        yield family, batch.slice(start, end - start).select(names)


def parts_of(batch: pa.RecordBatch) -> tuple[Part, ...]:
    """A logged batch by family."""
    found = sliced(batch)
    return tuple(Part(family, rows, rows.column(KEY).to_pylist()) for family, rows in found)


def assembled(parts: Sequence[Part], columns: Sequence[ColumnDef]) -> pa.RecordBatch:
    """One batch for the log; `parts` are in order of family."""
    if all(part.family == ROWS for part in parts):
        (only,) = parts
        return only.rows
    schema = _mixed_schema(columns)
    arrays = []
    for field in schema:
        if field.name == FAMILY:
            pieces = [
                pa.repeat(pa.scalar(part.family, pa.int32()), part.rows.num_rows) for part in parts
            ]
        else:
            pieces = [_column(part.rows, field) for part in parts]
        arrays.append(pa.concat_arrays(pieces))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _mixed_schema(columns: Sequence[ColumnDef]) -> pa.Schema:
    key, op, *_ = log_schema(())
    family = pa.field(FAMILY, pa.int32(), nullable=False)
    return pa.schema([key, op, family, *value_fields(ENTRY_COLUMNS), *value_fields(columns)])


def _column(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name in rows.schema.names:
        return rows.column(field.name)
    return pa.nulls(rows.num_rows, field.type)


def _is_of(name: str, family: int) -> bool:
    return name in (KEY, OP) or ((name == ROW) == (family != ROWS) and name != FAMILY)
