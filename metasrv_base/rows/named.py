"""Rows of users as one Arrow batch with the names that users know, of what they name alone. Pure.

What is not named is left to whoever knows the newest schema: a default, or the value that is there.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from metasrv_base.errors import Refused
from metasrv_base.rows.convert import Row, Rows, array_of, cast_column
from metasrv_base.rows.layout import KeyLike, Layout, LayoutColumn
from metasrv_base.schema.values import Value, from_python


def named_batch(layout: Layout, rows: Rows, *, fills: bool) -> pa.RecordBatch:
    """The columns that *rows* name, in their exact types. Raises Refused.

    A column that some of them name and others do not has its default in those if *fills*.
    """
    if isinstance(rows, pa.RecordBatch | pa.Table):
        return _of_arrow(layout, rows)
    for position, row in enumerate(rows):
        for name in row:
            layout.must_know(name, f"/rows/{position}")
    names = dict.fromkeys(name for row in rows for name in row)
    if not fills and any(len(row) < len(names) for row in rows):
        raise Refused("invalid-request", pointer="/rows", expected="the same columns in every row")
    columns = [layout.named[name] for name in names]
    return _batch(columns, [_array(column, rows) for column in columns])


def key_batch(layout: Layout, keys: Sequence[KeyLike]) -> pa.RecordBatch:
    """Makes a batch of the primary key's columns, each key once. Raises Refused."""
    distinct = {layout.key_bytes(key): layout.key_values(key) for key in keys}
    columns = zip(*distinct.values(), strict=True) if distinct else [()] * len(layout.key)
    arrays = [array_of(*pair) for pair in zip(layout.key, columns, strict=True)]
    return _batch(layout.key, arrays)


def dicts_of(batch: pa.RecordBatch) -> list[dict[str, object]]:
    """Rows as Python has them; timestamps of nanoseconds as integers, for a datetime has none."""
    names = batch.schema.names
    values = zip(*map(_python, batch.columns), strict=True)
    return [dict(zip(names, row, strict=True)) for row in values]


def _of_arrow(layout: Layout, rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    names = rows.schema.names
    for name in names:
        layout.must_know(name, "/rows")
    if len(set(names)) < len(names):
        raise Refused("invalid-request", pointer="/rows", reason="a column stands twice")
    columns = [layout.named[name] for name in names]
    return _batch(columns, [cast_column(column, rows.column(column.name)) for column in columns])


def _array(column: LayoutColumn, rows: Sequence[Row]) -> pa.Array:
    return array_of(column, [_value(column, row, position) for position, row in enumerate(rows)])


def _value(column: LayoutColumn, row: Row, position: int) -> Value | None:
    value = row.get(column.name, column.default)
    return (
        None
        if value is None
        else from_python(column.type, value, f"/rows/{position}/{column.name}")
    )


def _batch(columns: Iterable[LayoutColumn], arrays: Sequence[pa.Array]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])


def _python(array: pa.Array) -> list[object]:
    if pa.types.is_timestamp(array.type) and array.type.unit == "ns":
        array = array.cast(pa.int64())
    values: list[object] = array.to_pylist()
    return values
