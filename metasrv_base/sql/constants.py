"""Constants of SQL, read into their JSON forms (metasrv_base/schema/values.py). What is read here,
`literals.py` prints."""

import base64
import re

from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import FLOATS, ColumnType
from metasrv_base.sql.reader import Reader
from metasrv_base.sql.tokens import SqlSort

EXPECTED = "a constant"
NUMBER_CHARS_MAX = 400
"""Enough for each float without an exponent; an integer of thousands of digits takes quadratic
time."""
_TYPED = ("DATE", "TIMESTAMP", "TIMESTAMPTZ")
"""Words that may stand before a string, as in DATE '2013-01-31'."""
_SQL_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00(?::?00)?)")


def constant(reader: Reader, type: ColumnType | None, pointer: str) -> JsonScalar | None:
    """Reads a constant in the JSON form that columns of *type* take; None is NULL. Whether it fits
    the type is judged later, at the place that is kept for *pointer*. Without a type a number is an
    integer or a float."""
    with reader.placed(pointer):
        if reader.takes("NULL"):
            return None
        if reader.is_next("TRUE") or reader.is_next("FALSE"):
            return reader.take().word == "TRUE"
        return _value(reader, type)


def _value(reader: Reader, type: ColumnType | None) -> JsonScalar:
    for word in _TYPED:
        if reader.is_next(word):
            reader.take()
            return _text(reader.text(f"{EXPECTED} after {word}"), type)
    token = reader.token
    match token.sort:
        case SqlSort.TEXT:
            return _text(reader.take().text, type)
        case SqlSort.BYTES:
            return base64.b64encode(_bytes(reader)).decode("ascii")
        case SqlSort.NUMBER | SqlSort.MARK if token.sort is SqlSort.NUMBER or token.text in "+-":
            sign = "-" if reader.takes("-") else ""
            if not sign:
                reader.takes("+")
            if reader.token.sort is not SqlSort.NUMBER:
                raise reader.unexpected("a number")
            if len(reader.token.text) > NUMBER_CHARS_MAX:
                raise reader.unexpected(f"a number of at most {NUMBER_CHARS_MAX} characters")
            return _number(sign + reader.take().text, type)
    raise reader.unexpected(EXPECTED)


def _bytes(reader: Reader) -> bytes:
    token = reader.take()
    try:
        return bytes.fromhex(token.text)
    except ValueError:
        expected = "two hexadecimal digits for each byte"
        raise reader.unexpected(expected, token=token) from None


def _number(text: str, type: ColumnType | None) -> JsonScalar:
    if type is not None and type.name == "decimal":
        return text
    is_whole = text.lstrip("-").isdigit()
    return int(text) if is_whole and (type is None or type.name not in FLOATS) else float(text)


def _text(text: str, type: ColumnType | None) -> str:
    """A string; an instant as PostgreSQL writes it becomes RFC 3339."""
    if type is not None and type.name == "timestamp" and (match := _SQL_INSTANT.fullmatch(text)):
        return f"{match[1]}T{match[2]}Z"
    return text
