"""The key encoding of `keycodec` for whole Arrow columns: the same bytes, millions a second.

No Python object is made per value: bytes are turned with `array.byteswap` and `bytes.translate`,
columns are joined by Arrow. (pyarrow does not bring numpy, so neither do we.)
"""

import sys
from array import array
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from metasrv_base.errors import Refused
from metasrv_base.schema.keycodec import END, ESCAPED_ZERO, integer_bits
from metasrv_base.schema.types import FLOATS, ColumnType

_SIGN_FLIPPED = bytes(byte ^ 0x80 for byte in range(256))
_WORDS = {1: "B", 2: "H", 4: "I", 8: "Q", 16: "Q"}  # array's type code of a word of that width


def encode_batch(types: Sequence[ColumnType], arrays: Sequence[pa.Array]) -> pa.BinaryArray:
    """The keys of all rows; `arrays` are the key columns in order, in their exact Arrow types.

    Raises Refused `invalid-request` for a null, a NaN or an array of another type.
    """
    assert len(types) == len(arrays) > 0, "one array for each column of the key"
    parts = [part for pair in zip(types, arrays, strict=True) for part in parts_of_keys(*pair)]
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b""))


def parts_of_keys(type: ColumnType, column: pa.Array) -> list[pa.Array | pa.Scalar]:
    """Binary arrays and scalars that make the keys of one column when they are joined row by row.
    Raises as `encode_batch`."""
    _check(type, column)
    if type.name in {"string", "binary"}:
        raw = column.cast(pa.binary())
        return [pc.replace_substring(raw, b"\x00", ESCAPED_ZERO), pa.scalar(END)]
    return [_fixed(type, column)]


def _check(type: ColumnType, column: pa.Array) -> None:
    if column.type != type.arrow:
        raise Refused(
            "invalid-request", type=type.text, found=str(column.type), expected=str(type.arrow)
        )
    if column.null_count:
        raise Refused("invalid-request", type=type.text, found="null", expected="a value in a key")
    if type.name in FLOATS and pc.any(pc.is_nan(column)).as_py():
        raise Refused("invalid-request", type=type.text, found="NaN", expected="a number in a key")


def _fixed(type: ColumnType, column: pa.Array) -> pa.BinaryArray:
    """A column of fixed width: big-endian words whose first bit is flipped."""
    if type.name == "boolean":
        return _as_binary(bytes(_raw(column.cast(pa.uint8()), 1)), 1)
    if type.name in FLOATS:
        column, width = _ordered_bits(column), column.type.bit_width // 8
    else:
        width = integer_bits(type) // 8
    words = array(_WORDS[width])
    words.frombytes(_raw(column, width))
    if sys.byteorder == "little":
        words.byteswap()
        if width == 16:  # a decimal is two words, the low one first
            words[0::2], words[1::2] = words[1::2], words[0::2]
    turned = bytearray(words.tobytes())
    turned[0::width] = turned[0::width].translate(_SIGN_FLIPPED)
    return _as_binary(bytes(turned), width)


def _ordered_bits(column: pa.Array) -> pa.Array:
    """Floats as the integers that sort alike: all bits but the sign are flipped if negative."""
    small = column.type == pa.float32()
    zero = pa.scalar(0.0, column.type)
    bits = pc.add(column, zero).view(pa.int32() if small else pa.int64())
    rest = pa.scalar(0x7FFFFFFF if small else 0x7FFFFFFFFFFFFFFF, bits.type)
    return pc.if_else(pc.less(bits, pa.scalar(0, bits.type)), pc.bit_wise_xor(bits, rest), bits)


def _raw(column: pa.Array, width: int) -> memoryview:
    start = column.offset * width
    return memoryview(column.buffers()[1])[start : start + len(column) * width]


def _as_binary(data: bytes, width: int) -> pa.BinaryArray:
    count = len(data) // width
    fixed = pa.Array.from_buffers(pa.binary(width), count, [None, pa.py_buffer(data)])
    return fixed.cast(pa.binary())
