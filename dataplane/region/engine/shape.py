"""Schemas of a region's batches, worked out once for each set of columns."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from dataplane.region.format.columns import EXPECT, OP, PUT, ColumnDef, column_name, log_schema
from dataplane.region.format.families import ENTRY_COLUMNS, FAMILY, ROW, ROWS, columns_in
from dataplane.region.log.logged_group import LoggedSchema
from metasrv_base.schema.types import arrow_type

ACCEPTED_MAX = 16
"""Schemas of senders that are remembered."""


class FamilyShape:
    """The shape of the rows of one family: its columns and their log schema."""

    def __init__(self, columns: Sequence[ColumnDef], not_here: frozenset[str]) -> None:
        self.columns = tuple(columns)
        self.schema = log_schema(columns)
        self.logged = LoggedSchema.of(self.schema)
        self.names: tuple[str, ...] = tuple(self.schema.names)
        self.not_here = not_here
        """Columns of other families: null in rows of this one."""
        self.not_null = [column for column in columns if not column.nullable]
        self._null_bits = {field.name: _null_bits(field.type) for field in self.schema}
        self._default_bytes = {
            column.name: len(str(column.origin_default).encode())
            for column in columns
            if column.origin_default is not None and _is_long(arrow_type(column.type))
        }

    def logged_bytes(self, batch: pa.RecordBatch) -> int:
        """The bytes of a batch with all columns of the family: what it lacks counts as nulls, or in
        puts as origin defaults. Values that are converted may take some bytes more."""
        present = set(batch.schema.names)
        lacked = [name for name in self.names if name not in present]
        size: int = batch.nbytes
        if not lacked:
            return size
        size += batch.num_rows * sum(self._null_bits[name] for name in lacked) // 8
        default_bytes = sum(self._default_bytes.get(name, 0) for name in lacked)
        if default_bytes:
            puts = pc.sum(pc.equal(batch.column(OP), pa.scalar(PUT, pa.uint8()))).as_py() or 0
            size += puts * default_bytes
        return size


class BatchShape:
    """The shape of the batches that a region takes. Only one thread may use it at a time."""

    def __init__(self, columns: Sequence[ColumnDef]) -> None:
        self.columns = columns
        replaced = {
            column_name(origin.id): arrow_type(origin.type)
            for column in columns
            for origin in column.origin_columns
        }
        others = frozenset({*(column.name for column in columns), *replaced})
        self._rows = FamilyShape(columns_in(ROWS, columns), frozenset({ROW}))
        self._entries = FamilyShape(ENTRY_COLUMNS, others)
        self.types: dict[str, pa.DataType] = {
            **{field.name: field.type for field in self._rows.schema},
            **{field.name: field.type for field in self._entries.schema},
            **replaced,
            EXPECT: pa.int64(),
            FAMILY: pa.int32(),
        }
        self._accepted: list[pa.Schema] = []

    def of(self, family: int) -> FamilyShape:
        return self._rows if family == ROWS else self._entries

    def logged_bytes(self, batch: pa.RecordBatch) -> int:
        """Returns as `FamilyShape.logged_bytes`, as if all were rows of the table. Any thread may
        ask."""
        return self._rows.logged_bytes(batch)

    def is_accepted(self, schema: pa.Schema) -> bool:
        """Whether a batch of that schema was looked at before, and nothing was wrong with it."""
        return any(schema.equals(accepted) for accepted in self._accepted)

    def accept(self, schema: pa.Schema) -> None:
        self._accepted = [schema.remove_metadata(), *self._accepted[: ACCEPTED_MAX - 1]]


def _is_long(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_binary(type))


def _null_bits(type: pa.DataType) -> int:
    """The bits of a null: of its place among the values or the offsets, and of its validity."""
    return 1 + (32 if _is_long(type) else int(type.bit_width))
