"""Hypothesis strategies for column types and the values they hold."""

import math
from datetime import date
from decimal import Decimal

from hypothesis import strategies as st

from metasrv_base.schema.instants import in_range
from metasrv_base.schema.types import INTEGER_BITS, PER_SECOND, ColumnType
from metasrv_base.schema.values import Value, scaled

PLAIN = ("boolean", *INTEGER_BITS, "float32", "float64", "string", "binary", "date")


def types() -> st.SearchStrategy[ColumnType]:
    decimals = st.integers(1, 38).flatmap(
        lambda p: st.integers(0, p).map(lambda s: ColumnType("decimal", precision=p, scale=s))
    )
    timestamps = st.sampled_from(list(PER_SECOND)).map(lambda u: ColumnType("timestamp", unit=u))
    return st.one_of(st.sampled_from(PLAIN).map(ColumnType), decimals, timestamps)


def values(type: ColumnType) -> st.SearchStrategy[Value]:
    """Values without NaN, with a taste for the bytes 00, 01 and FF that escapes are made of."""
    if type.name in INTEGER_BITS:
        half = 1 << (INTEGER_BITS[type.name] - 1)
        return st.integers(-half, half - 1)
    if type.name == "timestamp":
        scale = PER_SECOND[type.unit]
        wide = st.integers(-62_135_596_800 * scale, 253_402_300_799 * scale)
        return wide.filter(lambda count: in_range(count, type.unit))
    if type.name == "decimal":
        most = 10**type.precision - 1
        return st.integers(-most, most).map(lambda number: scaled(number, type.scale))
    plain: dict[str, st.SearchStrategy[Value]] = {
        "boolean": st.booleans(),
        "float32": st.floats(width=32, allow_nan=False),
        "float64": st.floats(allow_nan=False),
        "string": st.text(st.one_of(st.sampled_from("\0\1a"), st.characters(codec="utf-8"))),
        "binary": st.binary() | st.lists(st.sampled_from([0, 1, 255])).map(bytes),
        "date": st.dates(),
    }
    return plain[type.name]


def rows(types: list[ColumnType]) -> st.SearchStrategy[tuple[Value, ...]]:
    return st.tuples(*(values(type) for type in types))


def same(left: Value, right: Value) -> bool:
    """Equal, of one class, and NaN like NaN."""
    both_nan = (
        isinstance(left, float)
        and isinstance(right, float)
        and math.isnan(left)
        and math.isnan(right)
    )
    return type(left) is type(right) and (both_nan or left == right)


SAMPLES: tuple[tuple[str, tuple[Value, ...]], ...] = (
    ("boolean", (False, True)),
    ("int8", (-128, -1, 0, 1, 127)),
    ("int16", (-32768, 0, 32767)),
    ("int32", (-(2**31), 0, 2**31 - 1)),
    ("int64", (-(2**63), -1, 0, 1, 1024, 2**63 - 1)),
    ("float32", (-math.inf, -1.5, 0.0, 0.5, math.inf)),
    ("float64", (-math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.5, 1e300, math.inf)),
    ("decimal(10,2)", (Decimal("-99999999.99"), Decimal("0.00"), Decimal("12.50"))),
    ("decimal(38,0)", (Decimal(-(10**38) + 1), Decimal(0), Decimal(10**38 - 1))),
    ("string", ("", "\0", "\0a", "a", "a\0", "a\0\1", "ab", "ä", "飛", "🛫")),
    ("binary", (b"", b"\0", b"\0\0", b"\0\1", b"\0\xff", b"\1", b"a", b"\xff", b"\xff\0")),
    ("date", (date.min, date(1969, 12, 31), date(1970, 1, 1), date(2013, 4, 1), date.max)),
    ("timestamp(s)", (-1, 0, 1364774400)),
    ("timestamp(ms)", (-1, 0, 1364774400000)),
    ("timestamp(us)", (-1, 0, 1364774400000000)),
    ("timestamp(ns)", (-(2**63), -1, 0, 2**63 - 1)),
)
"""Rising within each type."""
