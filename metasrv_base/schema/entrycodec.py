"""Keys of index entries as bytes that sort like the values: a stored format (golden: entries.txt).

For every indexed column, in turn:

    null       00
    a value    01, and the value as `keycodec` writes it; NaN is the greatest number, and all NaNs
               are one

so nulls come first. Then the row's key, unless the index is unique and none of the values is null:
then equal values are one key, so that a region finds a duplicate by looking whether it is there.
The mark stands before columns that are not nullable too, for that can change without the index.
"""

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Corrupt
from metasrv_base.schema.keybatch import encode_batch, parts_of_keys
from metasrv_base.schema.keycodec import decode_first, encode
from metasrv_base.schema.types import FLOATS, ColumnType
from metasrv_base.schema.values import Value

FORMAT = 1
NULL = b"\x00"
PRESENT = b"\x01"
NAN: Mapping[str, bytes] = {
    "float32": bytes.fromhex("ffc00000"),
    "float64": bytes.fromhex("fff8000000000000"),
}


def encode_values(types: Sequence[ColumnType], values: Sequence[Value | None]) -> bytes:
    """Returns the common prefix of the entries of all rows with these values; *values* may be the
    first of the indexed ones only."""
    return b"".join(_part(*pair) for pair in zip(types, values, strict=True))


def encode_entry(
    types: Sequence[ColumnType], values: Sequence[Value | None], row_key: bytes, *, unique: bool
) -> bytes:
    """The key of one row's entry; `values` are the indexed ones, in the index's order."""
    encoded = encode_values(types, values)
    return encoded if unique and None not in values else encoded + row_key


def encode_entries(
    types: Sequence[ColumnType],
    arrays: Sequence[pa.Array],
    row_keys: pa.BinaryArray,
    *,
    unique: bool,
) -> pa.BinaryArray:
    """The same bytes for many rows; `arrays` in their exact Arrow types."""
    parts = [part for pair in zip(types, arrays, strict=True) for part in _parts(*pair)]
    if unique:
        has_null = pc.is_null(arrays[0])
        for column in arrays[1:]:
            has_null = pc.or_(has_null, pc.is_null(column))
        row_keys = pc.if_else(has_null, row_keys, pa.scalar(b""))
    return pc.binary_join_element_wise(*parts, row_keys, pa.scalar(b""))


def decode_values(types: Sequence[ColumnType], key: bytes) -> tuple[Value | None, ...]:
    """The values that an entry's key begins with; the rest of it is not looked at. Raises Corrupt
    for what is no key of these types."""
    values: list[Value | None] = []
    offset = 0
    for type in types:
        mark, offset = key[offset : offset + 1], offset + 1
        if mark == NULL:
            values.append(None)
            continue
        nan = NAN.get(type.name)
        if mark == PRESENT and nan is not None and key[offset : offset + len(nan)] == nan:
            values.append(math.nan)
            offset += len(nan)
            continue
        if mark != PRESENT:
            raise Corrupt("internal", what="entry", key=key[:64].hex())
        value, offset = decode_first(type, key, offset)
        values.append(value)
    return tuple(values)


def _part(type: ColumnType, value: Value | None) -> bytes:
    if value is None:
        return NULL
    if isinstance(value, float) and math.isnan(value):
        return PRESENT + NAN[type.name]
    return PRESENT + encode([type], [value])


def _parts(type: ColumnType, column: pa.Array) -> list[pa.Array | pa.Scalar]:
    """Arrays and constants that are joined row by row: this column's part of an entry's key."""
    is_nan = pc.fill_null(pc.is_nan(column), False) if type.name in FLOATS else None
    if not column.null_count and (is_nan is None or not pc.any(is_nan).as_py()):
        return [pa.scalar(PRESENT), *parts_of_keys(type, column)]
    return [_with_nulls(type, column, is_nan)]


def _with_nulls(
    type: ColumnType, column: pa.Array, is_nan: pa.BooleanArray | None
) -> pa.BinaryArray:
    """Encodes a column with nulls: values that are keys are encoded as such, and marks of null
    and NaN are put between them."""
    is_null = pc.is_null(column)
    is_key = pc.invert(is_null)
    if is_nan is not None:
        is_key = pc.and_not(is_key, is_nan)
    keys = encode_batch([type], [column.filter(is_key)])
    places = pc.subtract(pc.cumulative_sum(is_key.cast(pa.int64())), 1)
    spread = keys.take(pc.if_else(is_key, places, pa.scalar(None, pa.int64())))
    if is_nan is not None:
        spread = pc.if_else(is_nan, pa.scalar(NAN[type.name]), spread)
    marked = pc.binary_join_element_wise(pa.scalar(PRESENT), spread, pa.scalar(b""))
    return pc.if_else(is_null, pa.scalar(NULL), marked)
