"""Rows as Spark carries them, bit for bit: Spark has no unsigned bytes and its own idea of time.

Every value travels as the bytes or the integer it is made of, so that what comes back is what went
in, down to a NaN's bits and a nanosecond.
"""

from collections.abc import Iterable

import pyarrow as pa

from dataplane.region.format.columns import ColumnDef, file_schema, ordered

_DECIMAL_BYTES = 16
_BATCH_ROWS = 8192  # what the JVM holds of an input at a time
_SQL = {
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
}


def carrier_ddl(columns: Iterable[ColumnDef]) -> str:
    """The schema of carried rows in Spark's words."""
    schema = file_schema(columns)
    return ", ".join(f"`{field.name}` {_SQL[_carrier(field.type)]}" for field in schema)


def carried(table: pa.Table) -> list[pa.RecordBatch]:
    """`table` is as `columns.file_schema`."""
    fields = [pa.field(field.name, _carrier(field.type)) for field in table.schema]
    arrays = [_pack(column.combine_chunks()) for column in table.columns]
    batches: list[pa.RecordBatch] = pa.table(arrays, schema=pa.schema(fields)).to_batches(
        _BATCH_ROWS
    )
    return batches


def restored(batch: pa.RecordBatch, columns: Iterable[ColumnDef]) -> pa.Table:
    """The inverse of `carried`."""
    schema = file_schema(ordered(columns))
    arrays = [_unpack(batch.column(field.name), field.type) for field in schema]
    return pa.table(arrays, schema=schema)


def _carrier(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind) or pa.types.is_decimal(kind):
        return pa.binary()
    if pa.types.is_float32(kind) or pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_float64(kind) or pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int16() if pa.types.is_uint8(kind) else kind


def _pack(array: pa.Array) -> pa.Array:
    carrier = _carrier(array.type)
    if pa.types.is_decimal(array.type):
        return array.view(pa.binary(_DECIMAL_BYTES)).cast(carrier)
    if pa.types.is_string(array.type) or pa.types.is_uint8(array.type):
        return array.cast(carrier)
    return array.view(carrier)


def _unpack(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return array.cast(pa.binary(_DECIMAL_BYTES)).view(kind)
    if pa.types.is_string(kind) or pa.types.is_uint8(kind):
        return array.cast(kind)
    return array.view(kind)
