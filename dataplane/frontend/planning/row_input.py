"""Rows as a request has them, in the table's exact types: what it says of each column. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.rows.convert import array_of, cast_column
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.rows.limited import check_keys
from metasrv_base.schema.keybatch import encode_batch
from metasrv_base.schema.values import Value, from_json


class Op(StrEnum):
    """The operation of a statement on its rows."""

    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"


NEEDS_KEY_ONLY = frozenset({Op.UPDATE, Op.DELETE})
JsonRows: TypeAlias = "Sequence[Mapping[str, object]]"


@dataclass(frozen=True, slots=True)
class ColumnInput:
    """The values of one column, and the rows in which the request names it."""

    values: pa.Array
    named: pa.BooleanArray

    def taken(self, places: pa.Array) -> "ColumnInput":
        return ColumnInput(self.values.take(places), self.named.take(places))


@dataclass(frozen=True, slots=True)
class RowInput:
    """The rows of one statement, or those of one region."""

    keys: pa.BinaryArray
    """Encoded, each once."""
    columns: Mapping[int, ColumnInput]
    """Input by column id: the columns of the key, and those that a row names."""
    places: pa.Int64Array
    """The place of each row in the request; 0 is the first."""

    @property
    def count(self) -> int:
        return len(self.keys)

    def taken(self, places: pa.Array) -> "RowInput":
        columns = {id: column_input.taken(places) for id, column_input in self.columns.items()}
        return RowInput(self.keys.take(places), columns, self.places.take(places))

    def place(self, row: int) -> int:
        """The place of one of these rows in the request."""
        position: int = self.places[row].as_py()
        return position


def from_rows(layout: Layout, rows: JsonRows, op: Op) -> RowInput:
    """Rows as JSON has them. Raises Refused with a pointer into the body."""
    for number, row in enumerate(rows):
        for name in row:
            _must_fit(layout, name, op, f"/rows/{number}")
    named = dict.fromkeys(name for row in rows for name in row)
    needed = [*layout.key, *(layout.named[name] for name in named)]
    columns = {column.id: _column_input(column, rows) for column in dict.fromkeys(needed)}
    return _keyed(layout, columns)


def from_arrow(layout: Layout, rows: pa.RecordBatch, op: Op) -> RowInput:
    """Columns by name; what a batch has of a column it names in every row. Raises Refused."""
    names = rows.schema.names
    for name in names:
        _must_fit(layout, name, op, "/rows")
    if len(set(names)) < len(names):
        raise Refused("invalid-request", pointer="/rows", reason="a column stands twice")
    every = pa.repeat(pa.scalar(True), rows.num_rows)
    columns = {
        layout.named[name].id: ColumnInput(
            cast_column(layout.named[name], rows.column(name)), every
        )
        for name in names
    }
    return _keyed(layout, columns)


def by_region(layout: Layout, statement_rows: RowInput) -> Mapping[int, RowInput]:
    """Divides the rows by the number of their region, in order of region: a statement is atomic in
    each."""
    if not statement_rows.count:
        return {}
    if layout.router.regions == 1:
        return {0: statement_rows}
    numbers = layout.router.numbers(
        [statement_rows.columns[part.id].values for part in layout.routed_by]
    )
    present = sorted(pc.unique(numbers).to_pylist())
    if len(present) == 1:
        return {present[0]: statement_rows}
    places = _in_order(statement_rows.count)
    return {
        number: statement_rows.taken(places.filter(pc.equal(numbers, number))) for number in present
    }


def _must_fit(layout: Layout, name: str, op: Op, pointer: str) -> None:
    layout.must_know(name, pointer)
    if op is Op.DELETE and layout.named[name] not in layout.key:
        expected = "columns of the primary key: a delete names nothing else"
        raise Refused("invalid-request", pointer=pointer, found=name, expected=expected)


def _column_input(column: LayoutColumn, rows: JsonRows) -> ColumnInput:
    values = [_value(column, row, number) for number, row in enumerate(rows)]
    named = pa.array([column.name in row for row in rows], pa.bool_())
    return ColumnInput(array_of(column, values), named)


def _value(column: LayoutColumn, row: Mapping[str, object], number: int) -> Value | None:
    value = row.get(column.name)
    return None if value is None else from_json(column.type, value, f"/rows/{number}/{column.name}")


def _keyed(layout: Layout, columns: Mapping[int, ColumnInput]) -> RowInput:
    """Raises Refused for a row without its whole key, and for a key that stands twice."""
    for column in layout.key:
        column_input = columns.get(column.id)
        values = pa.nulls(1) if column_input is None else column_input.values
        if values.null_count:
            number = pc.index(values.is_null(), True).as_py()
            raise Refused(
                "invalid-request",
                pointer=f"/rows/{number}/{column.name}",
                found="null",
                expected=f"a value: {column.name} is part of the primary key",
            )
    keys = encode_batch(layout.key_types, [columns[part.id].values for part in layout.key])
    check_keys(keys)
    if not _rise(keys) and len(keys.unique()) < len(keys):
        raise Refused("invalid-request", pointer="/rows", reason="a key stands twice in the rows")
    return RowInput(keys, columns, _in_order(len(keys)))


def _rise(keys: pa.BinaryArray) -> bool:
    """Whether each is above the one before it: asked first, since it takes a third of the time that
    it takes to find out that all differ."""
    falls: int = pc.greater_equal(keys[:-1], keys[1:]).true_count
    return falls == 0


def _in_order(count: int) -> pa.Int64Array:
    return pa.array(np.arange(count))
