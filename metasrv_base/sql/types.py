"""Names of column types in SQL, and the types of `metasrv_base/schema/types.py` that they mean."""

from collections.abc import Mapping

from metasrv_base.schema.types import Unit
from metasrv_base.sql.reader import Reader

PLAIN: Mapping[str, str] = {
    "BOOLEAN": "boolean",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "REAL": "float32",
    "DOUBLE PRECISION": "float64",
    "TEXT": "string",
    "BYTEA": "binary",
    "DATE": "date",
}
"""Types as they are printed."""
_ALIASES: Mapping[str, str] = {
    "BOOL": "boolean",
    "INT": "int32",
    "INT2": "int16",
    "INT4": "int32",
    "FLOAT": "float64",
    "FLOAT4": "float32",
    "FLOAT8": "float64",
    "DOUBLE": "float64",
    "STRING": "string",
    "VARCHAR": "string",
    "BLOB": "binary",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT32": "float32",
    "FLOAT64": "float64",
}
"""Others that are read: of other systems, and those of the API."""
_AMBIGUOUS = "INT8"
DECIMALS = ("DECIMAL", "NUMERIC")
TIMESTAMPS = ("TIMESTAMPTZ", "TIMESTAMP")
DIGITS: Mapping[int, Unit] = {0: "s", 3: "ms", 6: "us", 9: "ns"}
"""Digits behind the second -> unit of a timestamp."""
DIGITS_DEFAULT = 6  # as in PostgreSQL
_WORDS = (*PLAIN, *_ALIASES, *DECIMALS, *TIMESTAMPS)
EXPECTED = f"a type: {', '.join(PLAIN)}, DECIMAL(p, s) or TIMESTAMPTZ(0, 3, 6 or 9)"


def type_text(reader: Reader, pointer: str) -> str:
    """Reads a type; returns the text of it that the API takes, as `decimal(10,2)`."""
    with reader.placed(pointer):
        word = reader.token.word
        if reader.takes("DOUBLE", "PRECISION"):
            return PLAIN["DOUBLE PRECISION"]
        if word in DECIMALS:
            reader.take()
            return _decimal(reader)
        if word in TIMESTAMPS:
            reader.take()
            return _timestamp(reader, word)
        if word == _AMBIGUOUS:
            raise reader.unexpected("TINYINT (int8 of one byte) or BIGINT (PostgreSQL's INT8)")
        name = PLAIN.get(word or "", _ALIASES.get(word or ""))
        if name is None:
            raise reader.unexpected(EXPECTED, choices=_WORDS)
        reader.take()
    if reader.is_next("("):
        raise reader.unexpected(f"no length: {word} takes none, and a check can bound it")
    return name


def _decimal(reader: Reader) -> str:
    expected, begin = "(precision, scale)", reader.token
    if not reader.is_next("("):
        raise reader.unexpected(expected)
    numbers = reader.listed(lambda _: reader.whole_number(expected))
    if len(numbers) > 2:
        raise reader.unexpected(expected, token=begin)
    precision, scale = (*numbers, 0)[:2]
    return f"decimal({precision},{scale})"


def _timestamp(reader: Reader, word: str) -> str:
    digits, token = DIGITS_DEFAULT, reader.token
    if reader.takes("("):
        token = reader.token
        digits = reader.whole_number("0, 3, 6 or 9")
        reader.must_take(")")
    if digits not in DIGITS:
        expected = "0, 3, 6 or 9 digits of a second"
        raise reader.unexpected(expected, token=token)
    if reader.is_next("WITHOUT"):
        raise reader.unexpected("an instant: a timestamp has no zone of its own, write TIMESTAMPTZ")
    if word == "TIMESTAMP" and reader.takes("WITH"):
        reader.must_take("TIME", "ZONE")
    return f"timestamp({DIGITS[digits]})"


def type_name(text: str) -> str:
    """The name that is printed for a type of the API; the inverse of `type_text`."""
    for name, meant in PLAIN.items():
        if meant == text:
            return name
    for digits, unit in DIGITS.items():
        if text == f"timestamp({unit})":
            return f"TIMESTAMPTZ({digits})"
    return text.upper().replace(",", ", ")
