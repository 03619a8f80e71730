"""Gives a column to rows that were written without it: a conversion, else its origin default."""

import json
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dataplane.region.format.columns import OP, ORIGIN_COLUMNS, ORIGIN_DEFAULT, PUT, SYSTEM
from metasrv_base.schema.arrays import arrow_array
from metasrv_base.schema.conversion import Conversion, conversion_of
from metasrv_base.schema.types import parse_type
from metasrv_base.schema.values import from_json


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with exactly the fields of `schema`; a column that it lacks is `as_written_before`.
    `table` has `_op`."""
    if table.schema.names == schema.names:
        return pa.table(table.columns, schema=schema)
    present = set(table.column_names)
    arrays = [
        table.column(field.name)
        if field.name in present
        else pa.chunked_array([as_written_before(field, table)])
        for field in schema
    ]
    return pa.table(arrays, schema=schema)


def with_values(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`rows`, or tombstones that were logged without values as `schema` has any rows: a scan or a
    flush takes the memory of all columns, which is counted as soon as they are in memory."""
    if rows.num_columns > len(SYSTEM):
        return rows
    nulls = [pa.nulls(rows.num_rows, field.type) for field in schema][len(SYSTEM) :]
    return pa.RecordBatch.from_arrays([*rows.columns, *nulls], schema=schema)


def as_written_before(field: pa.Field, rows: pa.Table | pa.RecordBatch) -> pa.Array:
    """The values of a column in rows that lack it and have `_op`: of the last column before it that
    they have, converted, else its origin default.

    A value that does not convert is null: either newer ones hide it, or the change is undone.
    """
    origins = json.loads((field.metadata or {}).get(ORIGIN_COLUMNS, "[]"))
    names = set(rows.schema.names)
    nearest = next((position for position, (name, _) in enumerate(origins) if name in names), None)
    if nearest is None:
        return _default(field, rows.column(OP))
    values = rows.column(origins[nearest][0])
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    for step in _steps([type for _, type in origins[: nearest + 1]]):
        values = step.of_array(values.cast(step.source.arrow)).values
    return values


def _steps(newest_first: list[str]) -> Iterator[Conversion]:
    for source, target in pairwise(map(parse_type, reversed(newest_first))):
        yield conversion_of(source, target)


def _default(field: pa.Field, ops: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The origin default in a put; a tombstone has no values."""
    text = (field.metadata or {}).get(ORIGIN_DEFAULT)
    if text is None:
        return pa.nulls(len(ops), field.type)
    name, value = json.loads(text)
    type = parse_type(name)
    origin = arrow_array(type, [from_json(type, value), None])
    codes = np.asarray(ops)
    if not codes.any():  # puts alone
        return pa.repeat(origin[0], len(codes))
    return origin.take(pa.array(codes != PUT).cast(pa.int8()))
