"""A TableSpec from an Arrow schema: what `metasrv import --create` shows. Pure."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from base.errors import Refused
from base.schema.types import DECIMAL_PRECISION_MAX, parse_type
from base.wire.tables import ColumnSpec, HashPartition, TableSpec

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


def infer_spec(name: str, schema: pa.Schema, key: Sequence[str], partitions: int = 1) -> TableSpec:
    """All columns, `key` as the primary key, hashed over `partitions` regions. Raises Refused."""
    missing = [column for column in key if column not in schema.names]
    if missing or not key:
        expected = "columns of the file: " + ", ".join(schema.names)
        raise Refused("invalid-request", pointer="/primary_key", found=missing, expected=expected)
    columns = tuple(
        ColumnSpec(name=one.name, type=type_text(one), nullable=one.name not in key)
        for one in schema
    )
    partition = HashPartition(by="hash", columns=tuple(key), count=partitions)
    return TableSpec(
        name=name,
        columns=columns,
        primary_key=tuple(key),
        partition=partition if partitions > 1 else None,
    )


def type_text(field: pa.Field) -> str:
    """Of our types the narrowest that holds every value of an Arrow type. Raises Refused."""
    type = field.type
    if pa.types.is_dictionary(type):
        type = type.value_type
    if pa.types.is_timestamp(type):
        return f"timestamp({type.unit})"
    if pa.types.is_decimal(type) and 0 <= type.scale <= type.precision <= DECIMAL_PRECISION_MAX:
        return parse_type(f"decimal({type.precision},{type.scale})").text
    found = next((text for matches, text in _PLAIN if matches(type)), None)
    if found is None:
        expected = "a type that a table has"
        raise Refused(
            "invalid-request", pointer=f"/{field.name}", found=str(type), expected=expected
        )
    return found
