"""Primary keys as bytes that sort like the values: a stored format (tests/golden/base/keys.txt).

Every column is written in turn, so a composite sorts by its first column, then the second:

    boolean    1 byte, 0 or 1
    int*       big-endian in its own width, sign bit flipped; timestamp as int64, date as int32
    decimal    the unscaled number as 16 bytes like an int128
    float*     big-endian IEEE bits; sign flipped if positive, all bits flipped if negative;
               -0.0 is written as 0.0, so that equal values are one key; NaN is refused
    string     UTF-8; binary: as it is; in both 00 becomes 00 FF, and 00 01 ends the column

Widths are fixed or the column is ended, so no key is a prefix of another key of the same types.
Ending with two bytes keeps a first byte FF of the next column from being read as an escape.
"""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal

from metasrv_base.errors import Corrupt, Refused
from metasrv_base.schema.types import INTEGER_BITS, ColumnType
from metasrv_base.schema.values import Value, scaled, unscaled

FORMAT = 1
ESCAPED_ZERO = b"\x00\xff"
END = b"\x00\x01"
DAY_ZERO = date(1970, 1, 1).toordinal()


def encode(types: Sequence[ColumnType], values: Sequence[Value]) -> bytes:
    """The key of one row: `values` in the order of the primary key, as
    `metasrv_base.schema.values` has them. Raises Refused `invalid-request` for NaN, which has no
    place in an order.
    """
    assert len(types) == len(values), "one value for each column of the key"
    return b"".join(
        _WRITERS[type.name](type, value) for type, value in zip(types, values, strict=True)
    )


def decode(types: Sequence[ColumnType], key: bytes) -> tuple[Value, ...]:
    """The inverse of `encode`. Raises Corrupt unless `key` is exactly what `encode` writes."""
    values: list[Value] = []
    offset = 0
    try:
        for type in types:
            value, offset = _READERS[type.name](type, key, offset)
            values.append(value)
    except (ValueError, struct.error, OverflowError) as error:
        raise Corrupt("internal", what="key", key=key[:64].hex()) from error
    if offset != len(key) or encode(types, values) != key:
        raise Corrupt("internal", what="key", key=key[:64].hex())
    return tuple(values)


def decode_first(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    """The value that stands in *key* from *offset* on, and where it ends. Raises Corrupt."""
    try:
        value, after = _READERS[type.name](type, key, offset)
    except (ValueError, struct.error, OverflowError) as error:
        raise Corrupt("internal", what="key", key=key[:64].hex()) from error
    if key[offset:after] != encode([type], [value]):
        raise Corrupt("internal", what="key", key=key[:64].hex())
    return value, after


def integer_bits(type: ColumnType) -> int:
    """The width of what is written as an integer."""
    return {"date": 32, "timestamp": 64, "decimal": 128, **INTEGER_BITS}[type.name]


def _write_boolean(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, bool)
    return b"\x01" if value else b"\x00"


def _write_integer(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, int)
    return _flipped(type, value)


def _write_date(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, date)
    return _flipped(type, value.toordinal() - DAY_ZERO)


def _write_decimal(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, Decimal)
    number = unscaled(value, type.scale)
    assert number is not None, "a decimal of another scale"
    return _flipped(type, number)


def _flipped(type: ColumnType, number: int) -> bytes:
    """Adding half the range flips the sign bit: the smallest number becomes all zeros."""
    bits = integer_bits(type)
    return (number + (1 << (bits - 1))).to_bytes(bits // 8, "big")


def _write_float(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, float)
    if math.isnan(value):
        raise Refused("invalid-request", type=type.text, found="NaN", expected="a number in a key")
    form, width = _float_form(type)
    bits = int.from_bytes(struct.pack(form, value + 0.0), "big")
    sign = 1 << (width * 8 - 1)
    return (bits ^ (2 * sign - 1) if bits & sign else bits | sign).to_bytes(width, "big")


def _write_string(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, str)
    return value.encode().replace(b"\x00", ESCAPED_ZERO) + END


def _write_binary(type: ColumnType, value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value.replace(b"\x00", ESCAPED_ZERO) + END


def _read_boolean(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    return key[offset : offset + 1] != b"\x00", offset + 1


def _read_integer(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    return _unflipped(type, key, offset)


def _read_date(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    days, after = _unflipped(type, key, offset)
    return date.fromordinal(days + DAY_ZERO), after


def _read_decimal(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    number, after = _unflipped(type, key, offset)
    return scaled(number, type.scale), after


def _unflipped(type: ColumnType, key: bytes, offset: int) -> tuple[int, int]:
    bits = integer_bits(type)
    after = offset + bits // 8
    return int.from_bytes(key[offset:after], "big") - (1 << (bits - 1)), after


def _read_float(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    form, width = _float_form(type)
    bits = int.from_bytes(key[offset : offset + width], "big")
    sign = 1 << (width * 8 - 1)
    bits = bits ^ sign if bits & sign else bits ^ (2 * sign - 1)
    (value,) = struct.unpack(form, bits.to_bytes(width, "big"))
    if math.isnan(value):
        raise ValueError("NaN")
    return value, offset + width


def _float_form(type: ColumnType) -> tuple[str, int]:
    return (">d", 8) if type.name == "float64" else (">f", 4)


def _read_string(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    raw, after = _unescaped(key, offset)
    return raw.decode(), after


def _read_binary(type: ColumnType, key: bytes, offset: int) -> tuple[Value, int]:
    return _unescaped(key, offset)


def _unescaped(key: bytes, offset: int) -> tuple[bytes, int]:
    """ValueError if the column has no end. A stray escape is left to the caller's comparison."""
    zero = key.index(b"\x00", offset)
    while key[zero : zero + 2] == ESCAPED_ZERO:
        zero = key.index(b"\x00", zero + 2)
    return key[offset:zero].replace(ESCAPED_ZERO, b"\x00"), zero + len(END)


_WRITERS: Mapping[str, Callable[[ColumnType, Value], bytes]] = {
    "boolean": _write_boolean,
    **dict.fromkeys((*INTEGER_BITS, "timestamp"), _write_integer),
    "date": _write_date,
    "decimal": _write_decimal,
    "float32": _write_float,
    "float64": _write_float,
    "string": _write_string,
    "binary": _write_binary,
}
_READERS: Mapping[str, Callable[[ColumnType, bytes, int], tuple[Value, int]]] = {
    "boolean": _read_boolean,
    **dict.fromkeys((*INTEGER_BITS, "timestamp"), _read_integer),
    "date": _read_date,
    "decimal": _read_decimal,
    "float32": _read_float,
    "float64": _read_float,
    "string": _read_string,
    "binary": _read_binary,
}
