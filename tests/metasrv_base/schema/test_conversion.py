"""Conversions between column types: which there are, and that arrays and values agree."""

import math
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from metasrv_base.schema.arrays import arrow_array, values_of
from metasrv_base.schema.conversion import Conversion, conversion_of
from metasrv_base.schema.conversion_rules import WAYS, family
from metasrv_base.schema.types import ColumnType, parse_type
from metasrv_base.schema.values import Value
from tests.metasrv_base.schema.values import same, values

FITS: tuple[tuple[str, str, Value, Value], ...] = (
    ("int64", "int8", -128, -128),
    ("int64", "float64", 2**60, float(2**60)),
    ("int32", "decimal(5,2)", 123, Decimal("123.00")),
    ("int64", "boolean", 1, True),
    ("float64", "int64", -0.0, 0),
    ("float64", "int64", 9e15, 9_000_000_000_000_000),
    ("float64", "float32", math.inf, math.inf),
    ("float32", "decimal(3,2)", 0.10000000149011612, Decimal("0.10")),
    ("float32", "string", 0.10000000149011612, "0.1"),
    ("float64", "string", 1e16, "1e+16"),
    ("float64", "string", math.nan, "NaN"),
    ("decimal(4,2)", "float64", Decimal("0.10"), 0.1),
    ("decimal(4,2)", "decimal(2,1)", Decimal("1.50"), Decimal("1.5")),
    ("decimal(4,2)", "string", Decimal("1.50"), "1.50"),
    ("decimal(38,0)", "int64", Decimal(2**63 - 1), 2**63 - 1),
    ("boolean", "int8", True, 1),
    ("boolean", "string", False, "false"),
    ("string", "int8", "-7", -7),
    ("string", "float64", "0.1", 0.1),
    ("string", "float32", "0.1", 0.10000000149011612),
    ("string", "float64", "-Infinity", -math.inf),
    ("string", "decimal(4,2)", "1.5", Decimal("1.50")),
    ("string", "date", "2013-01-31", date(2013, 1, 31)),
    ("string", "timestamp(ms)", "1970-01-01T00:00:00.5Z", 500),
    ("string", "binary", "ä", "ä".encode()),
    ("binary", "string", "飛".encode(), "飛"),
    ("date", "timestamp(s)", date(1969, 12, 31), -86_400),
    ("date", "string", date(2013, 1, 31), "2013-01-31"),
    ("timestamp(ms)", "date", -86_400_000, date(1969, 12, 31)),
    ("timestamp(ms)", "timestamp(s)", -2000, -2),
    ("timestamp(s)", "string", 0, "1970-01-01T00:00:00Z"),
)

MISFITS: tuple[tuple[str, str, Value], ...] = (
    ("int64", "int8", 128),
    ("int64", "float64", 2**53 + 1),
    ("int64", "float32", 2**24 + 1),
    ("int64", "decimal(5,2)", 1000),
    ("int64", "boolean", 2),
    ("float64", "int64", 0.5),
    ("float64", "int64", 2.0**63),
    ("float64", "int8", math.nan),
    ("float64", "float32", 0.1),
    ("float64", "float32", 1e300),
    ("float64", "decimal(4,2)", 0.125),
    ("float64", "decimal(4,2)", math.inf),
    ("decimal(4,2)", "decimal(3,1)", Decimal("1.55")),
    ("decimal(38,0)", "decimal(38,10)", Decimal(12345678901234567890123456789012345678)),
    ("decimal(38,0)", "float64", Decimal(10**17 + 1)),
    ("decimal(4,2)", "int8", Decimal("1.50")),
    ("string", "int64", "007"),
    ("string", "int64", "-0"),
    ("string", "int64", " 7"),
    ("string", "int64", "\u0667"),
    ("string", "int8", "128"),
    ("string", "float64", "0.1000000000000000000001"),
    ("string", "float64", "1e999"),
    ("string", "float64", "1e-999"),
    ("string", "float64", "1e9999999999"),
    ("string", "float64", "nan"),
    ("string", "decimal(4,2)", "01.5"),
    ("string", "decimal(4,2)", "1.555"),
    ("string", "decimal(4,2)", "1e1"),
    ("string", "boolean", "yes"),
    ("string", "date", "2013-02-30"),
    ("string", "timestamp(s)", "1970-01-01T00:00:00.5Z"),
    ("binary", "string", b"\xff"),
    ("date", "timestamp(ns)", date(1, 1, 1)),
    ("timestamp(ms)", "date", 1),
    ("timestamp(ms)", "timestamp(s)", 1),
    ("timestamp(s)", "timestamp(ns)", 10**10),
)

LOSSLESS = (
    ("int8", "int16"),
    ("int64", "string"),
    ("int32", "float64"),
    ("int16", "float32"),
    ("int64", "decimal(19,0)"),
    ("float32", "float64"),
    ("float64", "string"),
    ("decimal(18,0)", "int64"),
    ("decimal(4,2)", "decimal(5,2)"),
    ("decimal(4,2)", "decimal(6,3)"),
    ("decimal(15,5)", "float64"),
    ("boolean", "int8"),
    ("string", "binary"),
    ("date", "timestamp(us)"),
    ("timestamp(s)", "timestamp(us)"),
)

LOSSY = (
    ("int16", "int8"),
    ("int64", "float64"),
    ("int32", "float32"),
    ("int64", "decimal(18,0)"),
    ("float64", "float32"),
    ("decimal(19,0)", "int64"),
    ("decimal(4,2)", "decimal(3,2)"),
    ("decimal(4,2)", "decimal(4,3)"),
    ("decimal(16,5)", "float64"),
    ("string", "int64"),
    ("binary", "string"),
    ("date", "timestamp(ns)"),
    ("timestamp(s)", "timestamp(ns)"),
    ("timestamp(ms)", "timestamp(s)"),
)


FAMILIES: dict[str, list[ColumnType]] = {}
for named in (
    *("boolean", "string", "binary", "date", "float32", "float64"),
    *("int8", "int16", "int32", "int64"),
    *("decimal(1,0)", "decimal(4,2)", "decimal(15,3)", "decimal(38,0)", "decimal(38,38)"),
    *("timestamp(s)", "timestamp(ms)", "timestamp(us)", "timestamp(ns)"),
):
    FAMILIES.setdefault(family(parse_type(named)), []).append(parse_type(named))
CONVERSIONS = [
    Conversion(a, b) for left, right in WAYS for a in FAMILIES[left] for b in FAMILIES[right]
]


@st.composite
def told(draw: st.DrawFn) -> tuple[Conversion, list[Value | None]]:
    """A conversion, and values of which many fit: each is drawn of either type."""
    conversion = draw(st.sampled_from(CONVERSIONS))
    given_ones = [draw(values(conversion.source)) for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 3))):
        back = converted(conversion.reverse, draw(values(conversion.target)))
        given_ones += [] if back is None else [back]
    return conversion, draw(st.permutations([*given_ones, *given_ones[:1], None]))


def converted(conversion: Conversion, value: Value) -> Value | None:
    try:
        return conversion.of_value(value)
    except Refused:
        return None


def equal(back: Value, value: Value) -> bool:
    """A text may write its number otherwise."""
    if isinstance(back, str) and isinstance(value, str) and back != value:
        return Decimal(back) == Decimal(value)
    return same(back, value)


def bits(value: Value | None) -> object:
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


def between(source: str, target: str) -> Conversion:
    return conversion_of(parse_type(source), parse_type(target))


@settings(max_examples=150)
@given(told())
@pytest.mark.slow
def test_given_values_when_converted_as_an_array_then_each_is_what_it_is_alone_and_comes_back(
    case: tuple[Conversion, list[Value | None]],
) -> None:
    conversion, originals = case
    alone = [None if v is None else converted(conversion, v) for v in originals]

    found = conversion.of_array(arrow_array(conversion.source, originals))

    assert found.values.type == conversion.target.arrow
    assert [bits(v) for v in values_of(conversion.target, found.values)] == [bits(v) for v in alone]
    for value, there, is_misfit in zip(originals, alone, found.misfits.to_pylist(), strict=True):
        assert is_misfit == (value is not None and there is None)
        assert not (is_misfit and conversion.is_lossless)
        if value is not None and there is not None:
            assert equal(conversion.reverse.of_value(there), value)


@pytest.mark.parametrize(("source", "target", "value", "expected"), FITS)
def test_given_a_value_that_fits_when_converted_then_it_is_the_same_value(
    source: str, target: str, value: Value, expected: Value
) -> None:
    found = between(source, target).of_value(value)
    in_array = between(source, target).of_array(
        arrow_array(parse_type(source), [value, value, None])
    )

    assert same(found, expected)
    first, _, null = values_of(parse_type(target), in_array.values)
    assert first is not None
    assert same(first, expected)
    assert null is None


@pytest.mark.parametrize(("source", "target", "value"), MISFITS)
@pytest.mark.case("catalog 63")
def test_given_a_value_that_does_not_fit_when_converted_then_it_is_refused_never_rounded(
    source: str, target: str, value: Value
) -> None:
    with pytest.raises(Refused) as refused:
        between(source, target).of_value(value, "/rows/0/a")
    in_array = between(source, target).of_array(arrow_array(parse_type(source), [None, value]))

    assert refused.value.facts["pointer"] == "/rows/0/a"
    assert refused.value.facts["type"] == source
    assert in_array.values.to_pylist() == [None, None]
    assert in_array.misfits.to_pylist() == [False, True]


@pytest.mark.parametrize(("source", "target"), LOSSLESS)
@pytest.mark.case("catalog 61", "catalog 64")
def test_given_a_wider_type_when_asked_then_every_value_fits(source: str, target: str) -> None:
    assert between(source, target).is_lossless


@pytest.mark.parametrize(("source", "target"), LOSSY)
@pytest.mark.case("catalog 61", "catalog 64")
def test_given_a_narrower_type_when_asked_then_not_every_value_fits(
    source: str, target: str
) -> None:
    assert not between(source, target).is_lossless


def test_given_the_table_when_read_then_every_way_has_its_way_back() -> None:
    assert {(target, source) for source, target in WAYS} == set(WAYS)


def test_given_types_that_share_no_value_when_asked_then_it_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        between("date", "int64")

    assert refused.value.code == "invalid-schema-change"


def test_given_a_day_without_a_date_when_converted_then_it_does_not_fit() -> None:
    days = pa.array([10_000_000, 0], pa.int32()).cast(pa.date32())

    found = between("date", "string").of_array(days)

    assert found.values.to_pylist() == [None, "1970-01-01"]
    assert found.misfits.to_pylist() == [True, False]


def test_given_no_values_when_converted_then_there_are_none_of_the_other_type() -> None:
    for conversion in CONVERSIONS:
        found = conversion.of_array(arrow_array(conversion.source, [None]))

        assert found.values.type == conversion.target.arrow
        assert found.values.null_count == 1
        assert found.misfits.to_pylist() == [False]
        assert len(conversion.of_array(arrow_array(conversion.source, [])).values) == 0
