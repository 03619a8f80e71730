"""Values of users as arrays in the exact types of columns, and back. Pure.

Arrow rounds, cuts off and guesses where it casts from one kind of value to another. Who still
writes a column's former type has what is stored then (docs/decisions/0100), or is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.schema.arrays import arrow_array, has_nameless
from metasrv_base.schema.arrow_types import holding
from metasrv_base.schema.conversion import Conversion, cast_to_decimals
from metasrv_base.schema.conversion_rules import WAYS, family
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import ColumnType
from metasrv_base.schema.values import to_json

Row = Mapping[str, object]
Rows: TypeAlias = "Sequence[Row] | pa.Table | pa.RecordBatch"


def to_users(columns: Sequence[LayoutColumn], batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a region with the names, the order and the types that users know."""
    arrays = [batch.column(column.field) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=Layout.arrow_of(columns))


def to_json_rows(
    columns: Sequence[LayoutColumn], batch: pa.RecordBatch | pa.Table
) -> list[dict[str, JsonScalar | None]]:
    """Values in their JSON form, by name; *batch* as `to_users` makes it."""
    values = [json_column(column.type, batch.column(column.name)) for column in columns]
    names = [column.name for column in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def array_of(column: LayoutColumn, values: Sequence[object]) -> pa.Array:
    """Makes an array of values that `from_python` returned."""
    return arrow_array(column.type, values)


def cast_column(column: LayoutColumn, array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Converts to the exact type of the column. Raises Refused if that would lose information."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    values = array if array.type == column.type.arrow else _cast(column, array)
    if has_nameless(column.type, values):
        raise Refused(
            "invalid-request", pointer=f"/rows/{column.name}", expected="a year from 0001 to 9999"
        )
    return values


def _cast(column: LayoutColumn, array: pa.Array) -> pa.Array:
    try:
        return _exactly(column.type, array)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise Refused(
            "invalid-request",
            pointer=f"/rows/{column.name}",
            found=str(array.type),
            expected=column.type.text,
            reason=str(error).partition("\n")[0],
        ) from error


def _exactly(type: ColumnType, array: pa.Array) -> pa.Array:
    """Raises ArrowInvalid or ArrowNotImplementedError for what *type* cannot hold."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type) and type.name == "decimal":
        return cast_to_decimals(array, type)
    source = holding(array.type)
    if source is None or family(source) == family(type):
        return _cast_within(type, array)
    if (family(source), family(type)) not in WAYS:
        return array.cast(type.arrow)  # as a number of units, of which nothing is lost
    converted = Conversion(source, type).of_array(array.cast(source.arrow))
    position = pc.index(converted.misfits, True).as_py()
    if position >= 0:
        raise pa.ArrowInvalid(f"the value at {position} is none of {type.text}")
    return converted.values


def _cast_within(type: ColumnType, array: pa.Array) -> pa.Array:
    """Casts to another type of the same family. A float is rounded to the nearest, as in JSON.
    Raises ArrowInvalid for one beyond the greatest float32, which would become infinite."""
    values = array.cast(type.arrow)
    if values.type == pa.float32() and array.type == pa.float64():
        overflows = pc.and_(pc.is_inf(values), pc.is_finite(array))
        position = pc.index(overflows, True).as_py()
        if position >= 0:
            raise pa.ArrowInvalid(f"the value at {position} is none of {type.text}")
    return values


def check_nulls(
    column: LayoutColumn, array: pa.Array, place_of: Callable[[int], int] = lambda row: row
) -> None:
    """Raises Refused for a null where there must be a value. *place_of*: of a row of *array* in the
    request."""
    if column.nullable or not array.null_count:
        return
    position = place_of(pc.index(array.is_null(), True).as_py())
    raise Refused(
        "invalid-request",
        pointer=f"/rows/{position}/{column.name}",
        found="null",
        expected=f"a value: {column.name} is not nullable",
    )


def json_column(type: ColumnType, array: pa.Array | pa.ChunkedArray) -> list[JsonScalar | None]:
    """Values of a column in its exact Arrow type, in their JSON form."""
    if type.name == "timestamp":
        array = array.cast(pa.int64())
    return [None if value is None else to_json(type, value) for value in array.to_pylist()]
