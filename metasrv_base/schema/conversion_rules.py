"""Conversions of values between types, as data: a row for each pair of families.

Nothing is rounded, cut off or guessed: a value that the other type cannot say does not fit. Where
a float meets decimal digits, as text or as a decimal, it stands for the fewest digits that name no
other float, as it does in JSON; where it meets an integer, it is the number it is.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeAlias

from metasrv_base.errors import Refused
from metasrv_base.schema.instants import INT64_MAX
from metasrv_base.schema.types import FLOATS, INTEGER_BITS, PER_SECOND, ColumnType
from metasrv_base.schema.values import Value, from_json, scaled, to_json, unscaled

Converted: TypeAlias = Value | None
"""A converted value; None if the value does not fit."""
OfValue: TypeAlias = Callable[[ColumnType, ColumnType, Value], Converted]
IsLossless: TypeAlias = Callable[[ColumnType, ColumnType], bool]

_EPOCH = date(1970, 1, 1)
_DAY_S = 86_400
_TEXT_MAX = 64  # characters of a number: none that fits has more
_INTEGER_TEXT = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_DECIMAL_TEXT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_FLOAT_TEXT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d{1,4})?", re.ASCII)
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BOOLEANS = {"false": False, "true": True}
_INTEGER_DIGITS = {name: len(str(1 << (bits - 1))) for name, bits in INTEGER_BITS.items()}
_FLOAT_BITS = {"float32": 24, "float64": 53}  # integers up to 2**bits are exact
_FLOAT_DIGITS = {"float32": 6, "float64": 15}  # as many decimal digits always come back
_FLOAT32_DIGITS_MAX = 9


@dataclass(frozen=True, slots=True)
class ConversionRule:
    """The conversion from the types of one family to those of another."""

    of_value: OfValue
    is_lossless: IsLossless
    """Whether every value of the first type fits the second."""


def family(type: ColumnType) -> str:
    if type.name in INTEGER_BITS:
        return "integer"
    return "float" if type.name in FLOATS else type.name


def _always(source: ColumnType, target: ColumnType) -> bool:
    return True


def _never(source: ColumnType, target: ColumnType) -> bool:
    return False


def _same(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return value


# Numbers.


def _integer_of(target: ColumnType, number: int) -> Converted:
    half = 1 << (INTEGER_BITS[target.name] - 1)
    return number if -half <= number < half else None


def _decimal_of(target: ColumnType, value: Decimal) -> Converted:
    number = unscaled(value, target.scale)
    if number is None or abs(number) >= 10**target.precision:
        return None
    return scaled(number, target.scale)


def _nearest(target: ColumnType, number: float) -> float:
    """Infinite, if it is too large."""
    if target.name == "float64":
        return number
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def _shortest(type: ColumnType, number: float) -> float:
    """The float whose `repr` has the fewest digits that name `number` among those of `type`."""
    if type.name == "float64" or not math.isfinite(number):
        return number
    digits = range(1, _FLOAT32_DIGITS_MAX + 1)
    tried = (float(f"{number:.{count}g}") for count in digits)
    return next(short for short in tried if _nearest(type, short) == number)


def _integer_to_integer(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _integer_of(target, int(_number(value)))


def _integer_to_float(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    number = int(_number(value))
    converted = _nearest(target, float(number))
    return converted if int(converted) == number else None


def _float_to_integer(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    number = float(_number(value))
    return _integer_of(target, int(number)) if number.is_integer() else None


def _float_to_float(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    number = float(_number(value))
    converted = _nearest(target, number)
    return converted if converted == number or math.isnan(number) else None


def _integer_to_decimal(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _decimal_of(target, scaled(int(_number(value)), 0))


def _decimal_to_integer(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    number = unscaled(_decimal(value), 0)
    return None if number is None else _integer_of(target, number)


def _decimal_to_decimal(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _decimal_of(target, _decimal(value))


def _float_to_decimal(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    number = float(_number(value))
    if not math.isfinite(number):
        return None
    return _decimal_of(target, Decimal(repr(_shortest(source, number))))


def _decimal_to_float(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _float_of_digits(target, str(_decimal(value)))


def _float_of_digits(target: ColumnType, text: str) -> Converted:
    """The nearest float, if its own digits are these."""
    number = _nearest(target, float(text))
    if not math.isfinite(number):
        return None
    return number if Decimal(repr(_shortest(target, number))) == Decimal(text) else None


def _boolean_to_integer(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return int(_number(value))


def _integer_to_boolean(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return bool(value) if value in (0, 1) else None


# Texts.


def _integer_to_string(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return str(value)


def _float_to_string(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return str(to_json(source, _shortest(source, float(_number(value)))))


def _boolean_to_string(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return "true" if value else "false"


def _json_text(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    try:
        return str(to_json(source, value))
    except Refused:  # an instant that no text can name
        return None


def _string_to_integer(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    text = _text(value)
    return _integer_of(target, int(text)) if _INTEGER_TEXT.fullmatch(text) else None


def _string_to_float(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    text = _text(value)
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if len(text) > _TEXT_MAX or not _FLOAT_TEXT.fullmatch(text):
        return None
    return _float_of_digits(target, text)


def _string_to_decimal(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    text = _text(value)
    if len(text) > _TEXT_MAX or not _DECIMAL_TEXT.fullmatch(text):
        return None
    return _decimal_of(target, Decimal(text))


def _string_to_boolean(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _BOOLEANS.get(_text(value))


def _of_json_text(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    try:
        return from_json(target, _text(value))
    except Refused:
        return None


def _string_to_binary(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    return _text(value).encode()


def _binary_to_string(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    assert isinstance(value, bytes)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


# Times.


def _timestamp_to_timestamp(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    count = int(_number(value)) * PER_SECOND[target.unit]
    return _instant(count, PER_SECOND[source.unit])


def _date_to_timestamp(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    assert isinstance(value, date)
    days = value.toordinal() - _EPOCH.toordinal()
    return _instant(days * _DAY_S * PER_SECOND[target.unit], 1)


def _timestamp_to_date(source: ColumnType, target: ColumnType, value: Value) -> Converted:
    days, rest = divmod(int(_number(value)), _DAY_S * PER_SECOND[source.unit])
    try:
        return None if rest else _EPOCH + timedelta(days=days)
    except OverflowError:
        return None


def _instant(count: int, divisor: int) -> Converted:
    """`count / divisor`, if that is a whole number of 64 bits."""
    whole, rest = divmod(count, divisor)
    return whole if not rest and -INT64_MAX - 1 <= whole <= INT64_MAX else None


# What a value is, told to the type checker.


def _number(value: Value) -> int | float:
    assert isinstance(value, int | float)
    return value


def _decimal(value: Value) -> Decimal:
    assert isinstance(value, Decimal)
    return value


def _text(value: Value) -> str:
    assert isinstance(value, str)
    return value


# Which types hold all of which.


def _integers_in_integer(source: ColumnType, target: ColumnType) -> bool:
    return INTEGER_BITS[source.name] <= INTEGER_BITS[target.name]


def _integers_in_float(source: ColumnType, target: ColumnType) -> bool:
    return INTEGER_BITS[source.name] <= _FLOAT_BITS[target.name]


def _integers_in_decimal(source: ColumnType, target: ColumnType) -> bool:
    return _INTEGER_DIGITS[source.name] <= target.precision - target.scale


def _decimals_in_integer(source: ColumnType, target: ColumnType) -> bool:
    return source.scale == 0 and source.precision < _INTEGER_DIGITS[target.name]


def _decimals_in_decimal(source: ColumnType, target: ColumnType) -> bool:
    more_whole = (target.precision - target.scale) - (source.precision - source.scale)
    return more_whole >= 0 and target.scale >= source.scale


def _decimals_in_float(source: ColumnType, target: ColumnType) -> bool:
    return source.precision <= _FLOAT_DIGITS[target.name]


def _floats_in_float(source: ColumnType, target: ColumnType) -> bool:
    return source == target or target.name == "float64"


def _instants_in_timestamp(source: ColumnType, target: ColumnType) -> bool:
    is_finer = PER_SECOND[source.unit] < PER_SECOND[target.unit]
    return source == target or (is_finer and target.unit != "ns")


def _dates_in_timestamp(source: ColumnType, target: ColumnType) -> bool:
    return target.unit != "ns"  # 64 bits of ns are 584 years


WAYS: Mapping[tuple[str, str], ConversionRule] = {
    ("integer", "integer"): ConversionRule(_integer_to_integer, _integers_in_integer),
    ("integer", "float"): ConversionRule(_integer_to_float, _integers_in_float),
    ("integer", "decimal"): ConversionRule(_integer_to_decimal, _integers_in_decimal),
    ("integer", "boolean"): ConversionRule(_integer_to_boolean, _never),
    ("integer", "string"): ConversionRule(_integer_to_string, _always),
    ("float", "integer"): ConversionRule(_float_to_integer, _never),
    ("float", "float"): ConversionRule(_float_to_float, _floats_in_float),
    ("float", "decimal"): ConversionRule(_float_to_decimal, _never),
    ("float", "string"): ConversionRule(_float_to_string, _always),
    ("decimal", "integer"): ConversionRule(_decimal_to_integer, _decimals_in_integer),
    ("decimal", "float"): ConversionRule(_decimal_to_float, _decimals_in_float),
    ("decimal", "decimal"): ConversionRule(_decimal_to_decimal, _decimals_in_decimal),
    ("decimal", "string"): ConversionRule(_json_text, _always),
    ("boolean", "boolean"): ConversionRule(_same, _always),
    ("boolean", "integer"): ConversionRule(_boolean_to_integer, _always),
    ("boolean", "string"): ConversionRule(_boolean_to_string, _always),
    ("string", "integer"): ConversionRule(_string_to_integer, _never),
    ("string", "float"): ConversionRule(_string_to_float, _never),
    ("string", "decimal"): ConversionRule(_string_to_decimal, _never),
    ("string", "boolean"): ConversionRule(_string_to_boolean, _never),
    ("string", "string"): ConversionRule(_same, _always),
    ("string", "binary"): ConversionRule(_string_to_binary, _always),
    ("string", "date"): ConversionRule(_of_json_text, _never),
    ("string", "timestamp"): ConversionRule(_of_json_text, _never),
    ("binary", "binary"): ConversionRule(_same, _always),
    ("binary", "string"): ConversionRule(_binary_to_string, _never),
    ("date", "date"): ConversionRule(_same, _always),
    ("date", "string"): ConversionRule(_json_text, _always),
    ("date", "timestamp"): ConversionRule(_date_to_timestamp, _dates_in_timestamp),
    ("timestamp", "date"): ConversionRule(_timestamp_to_date, _never),
    ("timestamp", "string"): ConversionRule(_json_text, _always),
    ("timestamp", "timestamp"): ConversionRule(_timestamp_to_timestamp, _instants_in_timestamp),
}
"""A pair that is not here has no conversion. Who has one has the reverse, too."""
