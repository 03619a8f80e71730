"""Schemas of a region's batches, worked out once for each set of columns."""

from collections.abc import Sequence

import pyarrow as pa

from dataplane.region.format.columns import EXPECT, ColumnDef, column_name, log_schema
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

    def is_accepted(self, schema: pa.Schema) -> bool:
        """Whether a batch of that schema was looked at before, and nothing was wrong with it."""
        return any(schema.equals(accepted) for accepted in self._accepted)

    def accept(self, schema: pa.Schema) -> None:
        self._accepted = [schema.remove_metadata(), *self._accepted[: ACCEPTED_MAX - 1]]
