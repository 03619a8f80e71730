"""Types of the columns of a result: their codes, and the Python values of what travels as JSON."""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

Column: TypeAlias = tuple[str, str | None, None, None, int | None, int | None, None]
"""A column of `description`: name, type code, .., precision, scale, ..; the code is the text of the
column's type, as `decimal(10,2)`. None: of DESCRIBE and EXPLAIN, whose values are as JSON has
them."""


@dataclass(frozen=True, slots=True)
class TypeGroup:
    """A type object of PEP 249: it equals the type codes of its group."""

    names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self.names
        return isinstance(other, TypeGroup) and other.names == self.names

    def __hash__(self) -> int:
        return hash(self.names)


STRING = TypeGroup(frozenset({"string"}))
BINARY = TypeGroup(frozenset({"binary"}))
NUMBER = TypeGroup(
    frozenset(
        {"boolean", "int8", "int16", "int32", "int64", "float32", "float64", "decimal"},
    )
)
DATETIME = TypeGroup(frozenset({"date", "timestamp"}))
ROWID = TypeGroup(frozenset())


def utc_timestamp(year: int, month: int, day: int, *clock: int) -> datetime:
    """An instant, in UTC; *clock*: hour, minute, second."""
    hour, minute, second = (*clock, 0, 0, 0)[:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def timestamp_from_ticks(ticks: float) -> datetime:
    """Converts *ticks*, seconds since 1970 in UTC."""
    return datetime.fromtimestamp(ticks, UTC)


def date_from_ticks(ticks: float) -> date:
    return timestamp_from_ticks(ticks).date()


def time_from_ticks(ticks: float) -> time:
    return timestamp_from_ticks(ticks).time()


def described(names: Sequence[str], types: Sequence[str]) -> tuple[Column, ...]:
    """The description of a result; *types* is empty for one that names none."""
    codes: Sequence[str | None] = types or [None] * len(names)
    return tuple(_column(name, code) for name, code in zip(names, codes, strict=True))


def _column(name: str, code: str | None) -> Column:
    precision = scale = None
    if code is not None and code.startswith("decimal("):
        precision, scale = map(int, code[len("decimal(") : -1].split(","))
    return name, code, None, None, precision, scale, None


Read: TypeAlias = Callable[[Any], object]


def reader(code: str | None) -> Read | None:
    """Makes the Python value of a JSON value of that type that is not null. None: it is the same.

    A datetime has no nanoseconds: a `timestamp(ns)` stays the text that can be bound again.
    """
    if code is None or code == "timestamp(ns)":
        return None
    return _READERS.get(code.partition("(")[0])


_READERS: Mapping[str, Read] = {
    "binary": base64.b64decode,
    "date": date.fromisoformat,
    "decimal": Decimal,
    "float32": float,
    "float64": float,
    "timestamp": datetime.fromisoformat,
}
