"""Column types and values: one text each, strict JSON in, the same value out."""

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from metasrv_base.schema.instants import instant_text, parse_instant
from metasrv_base.schema.types import ColumnType, arrow_type, parse_type
from metasrv_base.schema.values import Value, from_json, from_python, to_json
from tests.metasrv_base.schema.values import same, types, values


@given(types())
def test_given_a_type_when_its_text_is_parsed_then_it_is_the_same(type: ColumnType) -> None:
    assert parse_type(type.text) == type
    assert arrow_type(type.text) == type.arrow


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int",
        "INT64",
        " int64",
        "int64\n",
        "decimal",
        "decimal(0,0)",
        "decimal(0,5)",
        "decimal(39,0)",
        "decimal(5,6)",
        "decimal(10, 2)",
        "decimal(010,2)",
        "timestamp",
        "timestamp(m)",
        "varchar(-1)",
        "decimal(\u0663,\u0661)",
    ],
)
def test_given_another_text_when_parsed_then_it_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_type(text, "/columns/0/type")

    assert refused.value.code == "invalid-request"
    assert refused.value.facts["pointer"] == "/columns/0/type"


@given(st.data())
def test_given_a_value_when_sent_as_json_then_it_comes_back(data: st.DataObject) -> None:
    type = data.draw(types())
    value = data.draw(values(type))

    sent = json.loads(json.dumps(to_json(type, value)))

    assert same(from_json(type, sent), value)
    assert same(from_python(type, value), value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_given_a_float_that_json_lacks_when_sent_then_it_comes_back(value: float) -> None:
    assert same(from_json(parse_type("float64"), to_json(parse_type("float64"), value)), value)


@given(st.data())
def test_given_a_value_when_arrow_holds_it_then_it_comes_back(data: st.DataObject) -> None:
    type = data.draw(types().filter(lambda type: type.unit != "ns"))
    value = data.draw(values(type))

    held = pa.array([value], type.arrow)[0].as_py()

    assert from_python(type, held) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("boolean", 1),
        ("boolean", "true"),
        ("int8", 128),
        ("int64", 2**63),
        ("int64", -(2**63) - 1),
        ("int64", True),
        ("int64", "7"),
        ("int64", 1.0),
        ("float64", True),
        ("float64", "1.5"),
        ("float64", 10**400),
        ("float32", 1e39),
        ("decimal(4,2)", 1.5),
        ("decimal(4,2)", "1.555"),
        ("decimal(4,2)", "100.00"),
        ("decimal(4,2)", "1e1"),
        ("decimal(4,2)", "NaN"),
        ("string", 7),
        ("binary", "a"),
        ("binary", "YR=="),
        ("binary", "YQ==\n"),
        ("binary", "é"),
        ("date", "2013-02-29"),
        ("date", "20130228"),
        ("date", 15000),
        ("timestamp(ms)", 1364774400000),
        ("timestamp(ms)", "2013-04-01"),
        ("timestamp(ms)", "2013-04-01T00:00:00"),
        ("timestamp(ms)", "2013-04-01T02:00:00+02:00"),
        ("timestamp(ms)", "2013-04-01T24:00:00Z"),
        ("timestamp(ms)", "2013-04-01T00:00:00.0001Z"),
        ("timestamp(s)", "2013-04-01T00:00:00.5Z"),
        ("timestamp(ns)", "2500-01-01T00:00:00Z"),
        ("int64", [1]),
        ("string", None),
    ],
)
def test_given_json_of_another_kind_when_read_then_it_is_refused(text: str, value: object) -> None:
    with pytest.raises(Refused) as refused:
        from_json(parse_type(text), value, "/rows/0/x")

    assert refused.value.code == "invalid-request"
    assert refused.value.facts["pointer"] == "/rows/0/x"
    assert len(str(refused.value.facts["found"])) <= 64


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("timestamp(ms)", datetime(2013, 4, 1, tzinfo=UTC), 1364774400000),
        ("timestamp(s)", datetime(2013, 4, 1, 2, tzinfo=timezone(timedelta(hours=2))), 1364774400),
        ("timestamp(us)", "2013-04-01T00:00:00.000001Z", 1364774400000001),
        ("decimal(6,2)", 12, Decimal("12.00")),
        ("decimal(6,2)", "12.5", Decimal("12.50")),
        ("date", "2013-04-01", date(2013, 4, 1)),
        ("float64", 1, 1.0),
        ("float64", math.inf, math.inf),
        ("int16", 12, 12),
    ],
)
def test_given_what_python_has_when_read_then_it_is_the_value(
    text: str, value: object, wanted: Value
) -> None:
    assert same(from_python(parse_type(text), value), wanted)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("timestamp(ms)", datetime(2013, 4, 1)),  # noqa: DTZ001  # without a zone it is no instant
        ("timestamp(s)", datetime(2013, 4, 1, microsecond=1, tzinfo=UTC)),
        ("date", datetime(2013, 4, 1, tzinfo=UTC)),
        ("date", "2013-04-31"),
        ("date", "1 April"),
        ("binary", "YQ=="),
        ("decimal(4,2)", 1.5),
        ("decimal(4,2)", Decimal("NaN")),
        ("decimal(4,2)", Decimal("1E+999999")),
        ("float64", "NaN"),
    ],
)
def test_given_a_python_value_that_does_not_fit_then_it_is_refused(
    text: str, value: object
) -> None:
    with pytest.raises(Refused, match="invalid-request"):
        from_python(parse_type(text), value)


def test_given_instants_when_written_then_the_text_is_canonical() -> None:
    assert instant_text(1364774400000, "ms") == "2013-04-01T00:00:00Z"
    assert instant_text(1364774400050, "ms") == "2013-04-01T00:00:00.050Z"
    assert instant_text(-1, "ns") == "1969-12-31T23:59:59.999999999Z"
    assert parse_instant("0001-01-01T00:00:00+00:00", "s") == -62135596800


def test_given_an_instant_after_the_year_9999_when_written_then_it_is_refused() -> None:
    with pytest.raises(Refused, match="9999"):
        instant_text(253_402_300_800, "s")
