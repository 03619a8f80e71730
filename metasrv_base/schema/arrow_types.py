"""Mapping of Arrow types to the column type that holds all their values."""

from collections.abc import Callable

import pyarrow as pa

from metasrv_base.schema.types import DECIMAL_PRECISION_MAX, ColumnType, parse_type

_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int8"),
    (pa.types.is_int16, "int16"),
    (pa.types.is_int32, "int32"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_uint8, "int16"),
    (pa.types.is_uint16, "int32"),
    (pa.types.is_uint32, "int64"),
    (pa.types.is_uint64, "decimal(20,0)"),
    (pa.types.is_float16, "float32"),
    (pa.types.is_float32, "float32"),
    (pa.types.is_float64, "float64"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_string_view, "string"),
    (pa.types.is_binary, "binary"),
    (pa.types.is_large_binary, "binary"),
    (pa.types.is_fixed_size_binary, "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_null, "string"),
)


def holding(type: pa.DataType) -> ColumnType | None:
    """The narrowest that holds every value; None: none does. Of a dictionary, its values."""
    if pa.types.is_dictionary(type):
        type = type.value_type
    if pa.types.is_timestamp(type):
        return parse_type(f"timestamp({type.unit})")
    if pa.types.is_decimal(type) and 0 <= type.scale <= type.precision <= DECIMAL_PRECISION_MAX:
        return parse_type(f"decimal({type.precision},{type.scale})")
    return next((parse_type(text) for matches, text in _PLAIN if matches(type)), None)
