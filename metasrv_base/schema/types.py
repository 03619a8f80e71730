"""The column types of a table: a frozen value each, with one canonical text and one Arrow type."""

import re
from collections.abc import Mapping
from typing import Literal

import pyarrow as pa

from metasrv_base.errors import Refused
from metasrv_base.values.frozen import frozen

Unit = Literal["s", "ms", "us", "ns"]

PER_SECOND: Mapping[Unit, int] = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DECIMAL_PRECISION_MAX = 38  # what 128 bits hold, as in Arrow
INTEGER_BITS: Mapping[str, int] = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
FLOATS = frozenset({"float32", "float64"})

_PLAIN: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
}
_DECIMAL = re.compile(r"decimal\(([1-9][0-9]?),(0|[1-9][0-9]?)\)")
_TIMESTAMP = re.compile(r"timestamp\((s|ms|us|ns)\)")
TYPE_NAMES = (*_PLAIN, "decimal(p,s)", "timestamp(s|ms|us|ns)")


@frozen
class ColumnType:
    """One type. `precision` and `scale` belong to `decimal`, `unit` to `timestamp`."""

    name: str
    precision: int = 0
    scale: int = 0
    unit: Unit = "s"

    @property
    def text(self) -> str:
        """The canonical text: `parse_type(t.text) == t`, and no other text parses to it."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        return f"timestamp({self.unit})" if self.name == "timestamp" else self.name

    @property
    def arrow(self) -> pa.DataType:
        if self.name == "decimal":
            return pa.decimal128(self.precision, self.scale)
        if self.name == "timestamp":
            return pa.timestamp(self.unit, tz="UTC")
        return _PLAIN[self.name]


def parse_type(text: str, pointer: str = "") -> ColumnType:
    """Parses a type. Only the canonical text is accepted, so types compare by their text.

    Raises Refused `invalid-request` with the `pointer` to the field that holds the text.
    """
    if text in _PLAIN:
        return ColumnType(text)
    if match := _TIMESTAMP.fullmatch(text):
        return ColumnType("timestamp", unit=_unit(match[1]))
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1]), int(match[2])
        if precision <= DECIMAL_PRECISION_MAX and scale <= precision:
            return ColumnType("decimal", precision=precision, scale=scale)
        raise Refused(
            "invalid-request",
            pointer=pointer,
            found=text,
            expected=f"decimal(p,s) with 1 <= p <= {DECIMAL_PRECISION_MAX} and 0 <= s <= p",
        )
    raise Refused(
        "invalid-request",
        pointer=pointer,
        found=text,
        expected="one of the types " + " ".join(TYPE_NAMES),
    )


def arrow_type(text: str) -> pa.DataType:
    """The Arrow type of a canonical type text. Raises Refused like `parse_type`."""
    return parse_type(text).arrow


def _unit(text: str) -> Unit:
    return next(unit for unit in PER_SECOND if unit == text)
