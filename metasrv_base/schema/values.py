"""Values of columns: from JSON, into JSON, and from what Python or Arrow hand over."""

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from metasrv_base.errors import Refused
from metasrv_base.schema.instants import in_range, instant_text, parse_instant
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import FLOATS, INTEGER_BITS, PER_SECOND, ColumnType

type_of = type  # `type` is the word of this project's field everywhere below

Value = bool | int | float | Decimal | str | bytes | date
"""boolean: bool. int*: int. float*: float. decimal: Decimal with exactly `scale` places.
string: str. binary: bytes. date: datetime.date. timestamp: int, units since the Unix epoch (a
datetime has no nanoseconds)."""

_DECIMAL_TEXT = re.compile(r"-?\d{1,38}(?:\.\d{1,38})?", re.ASCII)
_DATE_TEXT = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WRITTEN_OTHERWISE = {"binary", "date", "decimal"}
"""Types whose JSON form is a text; that of dates and decimals is taken from Python too."""
_PYTHON = {
    "binary": "bytes",
    "date": "a datetime.date without a time, or a text as 2013-01-31",
    "decimal": "a decimal.Decimal, an int, or a text as 12.50; a float is not exact",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_json(type: ColumnType, value: object, pointer: str = "") -> Value:
    """The value of a JSON scalar that is not null, judged strictly.

    Raises Refused `invalid-request` with `pointer`, `found` and `expected`.
    """
    return _FROM_JSON[type.name](type, value, pointer)


def to_json(type: ColumnType, value: Value) -> JsonScalar:
    """Returns the JSON form, which `from_json` reads back. binary is base64, decimal is text."""
    match value:
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Decimal():
            return format(value, "f")
        case date():
            return value.isoformat()
        case bool() | str():
            return value
        case int():
            return instant_text(value, type.unit) if type.name == "timestamp" else value
        case float() if math.isfinite(value):
            return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def from_python(type: ColumnType, value: object, pointer: str = "") -> Value:
    """The value of what a Python caller or `as_py()` hands over: datetime for timestamps (aware),
    Decimal, int or text for decimals, date or text for dates, int for floats, and every value of
    its own type.

    Raises Refused `invalid-request` when it does not fit.
    """
    if type.name == "timestamp":
        return _timestamp_from_python(type, value, pointer)
    if type.name == "decimal" and (isinstance(value, Decimal) or type_of(value) is int):
        return _decimal(type, value if isinstance(value, Decimal) else Decimal(str(value)), pointer)
    if type.name == "date" and isinstance(value, date) and not isinstance(value, datetime):
        return value
    if type.name == "binary" and isinstance(value, bytes):
        return value
    if type.name in FLOATS and isinstance(value, float) and not math.isfinite(value):
        return value
    if type.name in FLOATS and isinstance(value, str):
        raise _refused(type, value, pointer, "a float")
    is_text = isinstance(value, str) and type.name != "binary"
    if type.name in _WRITTEN_OTHERWISE and not is_text:
        raise _refused(type, value, pointer, _PYTHON[type.name])
    return from_json(type, value, pointer)


def unscaled(value: Decimal, scale: int) -> int | None:
    """The integer `value * 10**scale`, exactly; None if that is not an integer."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > 128:
        return None
    number = int("".join(map(str, digits)))
    shift = exponent + scale
    whole, rest = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    return None if rest else (-whole if sign else whole)


def scaled(number: int, scale: int) -> Decimal:
    """The inverse of `unscaled`: exact, whatever the precision of the decimal context."""
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((int(number < 0), digits, -scale))


def _boolean(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, bool):
        return value
    raise _refused(type, value, pointer, "true or false")


def _integer(type: ColumnType, value: object, pointer: str) -> Value:
    half = 1 << (INTEGER_BITS[type.name] - 1)
    if type_of(value) is int and isinstance(value, int) and -half <= value < half:
        return value
    raise _refused(type, value, pointer, f"an integer from {-half} to {half - 1}")


def _float(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
            if type.name == "float32":
                (number,) = struct.unpack("<f", struct.pack("<f", number))
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _refused(type, value, pointer, f"a number that {type.text} can hold, or NaN in quotes")


def _decimal_from_json(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str) and _DECIMAL_TEXT.fullmatch(value):
        return _decimal(type, Decimal(value), pointer)
    raise _refused(type, value, pointer, 'a decimal in quotes, as "12.50"')


def _decimal(type: ColumnType, value: Decimal, pointer: str) -> Decimal:
    number = unscaled(value, type.scale)
    if number is None or abs(number) >= 10**type.precision:
        whole = type.precision - type.scale
        raise _refused(
            type, str(value), pointer, f"at most {whole} digits before and {type.scale} after '.'"
        )
    return scaled(number, type.scale)


def _string(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str):
        return value
    raise _refused(type, value, pointer, "a string")


def _binary(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str):
        try:
            raw = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if base64.b64encode(raw) == value.encode("utf-8", "replace"):
            return raw
    raise _refused(type, value, pointer, "base64 with padding (RFC 4648, 4)")


def _date(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str) and _DATE_TEXT.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise _refused(type, value, pointer, "a date that exists, as 2013-01-31")


def _timestamp(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, str):
        return parse_instant(value, type.unit, pointer)
    raise _refused(type, value, pointer, "an RFC 3339 time in UTC, as 2013-01-31T23:59:59Z")


def _timestamp_from_python(type: ColumnType, value: object, pointer: str) -> Value:
    if isinstance(value, datetime) and value.tzinfo is not None:
        since = value - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        count, rest = divmod(micros * PER_SECOND[type.unit], 1_000_000)
        if not rest and in_range(count, type.unit):
            return count
    if type_of(value) is int and isinstance(value, int) and in_range(value, type.unit):
        return value
    if isinstance(value, str):
        return parse_instant(value, type.unit, pointer)
    raise _refused(type, value, pointer, f"an aware datetime, or {type.unit} since the epoch")


def _refused(type: ColumnType, value: object, pointer: str, expected: str) -> Refused:
    return Refused(
        "invalid-request",
        pointer=pointer,
        type=type.text,
        found=repr(value)[:64],
        expected=expected,
    )


_FROM_JSON: Mapping[str, Callable[[ColumnType, object, str], Value]] = {
    "boolean": _boolean,
    **dict.fromkeys(INTEGER_BITS, _integer),
    **dict.fromkeys(FLOATS, _float),
    "decimal": _decimal_from_json,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "timestamp": _timestamp,
}
