"""Python values as constants of SQL: nothing that a value holds can end its constant."""

import math
import numbers
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import index
from typing import Any, SupportsFloat, SupportsIndex

from metasrv.dbapi.errors import DataError
from metasrv_base.sql.quoting import quoted

DIGITS_MAX = 400
"""Digits of an integer: about what the grammar takes."""
DECIMAL_DIGITS_MAX = 100
"""Digits of a Decimal before or behind the point; a column has 38."""
_NOT_FINITE = {math.inf: "'Infinity'", -math.inf: "'-Infinity'"}


def literal(value: object) -> str:
    """The constant of a value that a column of its type takes. Subclasses count as their base:
    their own `__str__` and `__repr__` are never asked.

    Raises DataError for a value of another type, and for one that no column can hold: a datetime
    without a zone, a text with half of a surrogate pair, a Decimal that is not finite.
    """
    if value is None:
        return "NULL"
    for kind, printed in _PRINTED:
        if isinstance(value, kind):
            return printed(value)
    return _refused(value)


def _refused(value: object) -> str:
    raise DataError(f"A value of type {type(value).__name__} cannot be bound.")


def _boolean(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _text(value: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError("A text has half of a surrogate pair, which is no Unicode.") from error
    return quoted(text)


def _integer(number: SupportsIndex) -> str:
    value = index(number)
    if value.bit_length() > 3 * DIGITS_MAX:
        raise DataError(f"An integer has more than {DIGITS_MAX} digits.")
    return repr(value)


def _float(number: SupportsFloat) -> str:
    value = float(number)
    if math.isnan(value):
        return "'NaN'"
    return _NOT_FINITE.get(value) or repr(value)


def _decimal(value: Decimal) -> str:
    if not Decimal.is_finite(value):
        raise DataError("A Decimal that is not finite cannot be bound.")
    digits = max(abs(Decimal.adjusted(value)), len(Decimal.as_tuple(value).digits))
    if digits > DECIMAL_DIGITS_MAX:
        raise DataError(f"A Decimal has more than {DECIMAL_DIGITS_MAX} digits.")
    return Decimal.__format__(value, "f")


def _instant(value: datetime) -> str:
    if value != value:  # pandas.NaT
        raise DataError("NaT cannot be bound; bind None.")
    if value.utcoffset() is None:
        raise DataError("A datetime needs a time zone: it names an instant.")
    instant = value.astimezone(UTC)
    fraction = f"{instant.microsecond:06d}"
    if nanosecond := getattr(value, "nanosecond", 0):  # of pandas.Timestamp
        fraction += f"{nanosecond:03d}"
    kept = fraction.rstrip("0")
    text = f"{instant.year:04d}-{instant.month:02d}-{instant.day:02d}"
    text += f"T{instant.hour:02d}:{instant.minute:02d}:{instant.second:02d}"
    return quoted(f"{text}.{kept}Z" if kept else f"{text}Z")


def _date(value: date) -> str:
    return quoted(date.isoformat(value))


def _time(value: time) -> str:
    return quoted(time.isoformat(value))


def _bytes(value: bytes | bytearray | memoryview) -> str:
    return f"X'{bytes(value).hex()}'"


_PRINTED: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (bool, _boolean),
    (str, _text),
    (int, _integer),
    (float, _float),
    (datetime, _instant),  # before its base
    (date, _date),
    (time, _time),
    ((bytes, bytearray, memoryview), _bytes),
    (Decimal, _decimal),
    (numbers.Integral, _integer),  # of numpy, as the next
    (numbers.Rational, _refused),  # no float is equal to it
    (numbers.Real, _float),
)
