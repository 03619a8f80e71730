"""Rows in and out: every type, defaults, and each way in which a row can be wrong."""

import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from metasrv_base.errors import Refused
from metasrv_base.rows.convert import cast_column
from metasrv_base.rows.layout import Layout, LayoutColumn
from metasrv_base.rows.named import dicts_of, named_batch
from metasrv_base.schema.types import parse_type
from tests.metasrv.sdk.samples import EMPTY, ROW, spec
from tests.metasrv.sdk.shapes import layout_of


def layout(**defaults: Any) -> Layout:
    return layout_of(spec(defaults=defaults))


def test_given_rows_of_every_type_when_converted_there_and_back_then_they_are_the_same() -> None:
    table = layout()

    batch = named_batch(table, [ROW, EMPTY], fills=True)

    assert dicts_of(batch) == [ROW, EMPTY]
    assert batch.schema.types == table.arrow.types


def test_given_arrow_of_other_types_when_it_fits_then_it_is_cast() -> None:
    table = layout()
    rows = pa.table(
        {
            "part": pa.array(["x"]).dictionary_encode(),
            "id": pa.array([3], pa.int8()),
            "milli": pa.array(["2013-01-01"]).cast(pa.timestamp("us")),
            "price": pa.array([Decimal("1.5")], pa.decimal128(4, 1)),
            "text": pa.array(["s"], pa.large_string()),
        }
    )

    (row,) = dicts_of(named_batch(table, rows, fills=True))

    assert (row["id"], row["part"], row["price"], row["text"]) == (3, "x", Decimal("1.50"), "s")
    assert row["milli"] == datetime.fromisoformat("2013-01-01T00:00:00Z")
    assert "long" not in row


def test_given_a_default_when_some_rows_leave_it_out_then_it_is_filled_in_and_null_stays_null() -> (
    None
):
    table = layout(text="none", long=7)
    rows: list[dict[str, object]] = [{"id": 1, "part": ""}, {"id": 2, "part": "", "text": None}]

    left_out, said = dicts_of(named_batch(table, rows, fills=True))

    assert (left_out["text"], said["text"]) == ("none", None)
    assert "long" not in left_out, "which whoever knows the newest schema fills"


@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ({"id": 1, "part": "a", "wrong": 1}, "/rows/1"),
        ({"id": "1", "part": "a"}, "/rows/1/id"),
        ({"id": True, "part": "a"}, "/rows/1/id"),
        ({"id": 2**63, "part": "a"}, "/rows/1/id"),
        ({"id": 1, "part": "a", "small": 128}, "/rows/1/small"),
        ({"id": 1, "part": "a", "price": Decimal("1.005")}, "/rows/1/price"),
        ({"id": 1, "part": "a", "milli": datetime.fromisoformat("2013-01-01")}, "/rows/1/milli"),
        ({"id": 1, "part": "a", "raw": "text"}, "/rows/1/raw"),
    ],
)
def test_given_a_wrong_row_when_converted_then_it_is_pointed_at(
    row: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(Refused) as refused:
        named_batch(layout(), [ROW, row], fills=True)

    assert refused.value.facts["pointer"] == pointer


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": [1], "part": ["a"], "wrong": [1]}),
        pa.table({"id": [1.5], "part": ["a"]}),
        pa.table({"id": [1], "part": ["a"], "small": [1000]}),
        pa.table([[1], [2], ["a"]], names=["id", "id", "part"]),
    ],
)
def test_given_wrong_arrow_when_converted_then_it_is_refused(rows: pa.Table) -> None:
    with pytest.raises(Refused):
        named_batch(layout(), rows, fills=True)


@pytest.mark.parametrize(
    ("name", "found", "last"),
    [
        ("day", pa.date32(), 2_932_896),
        ("second", pa.timestamp("s", "UTC"), 253_402_300_799),
        ("milli", pa.timestamp("ms", "UTC"), 253_402_300_799_999),
        ("micro", pa.timestamp("us"), 253_402_300_799_999_999),
    ],
)
def test_given_a_year_that_no_text_can_name_when_converted_then_it_is_refused(
    name: str, found: pa.DataType, last: int
) -> None:
    """Nobody could read the row again."""
    whole = pa.int32() if name == "day" else pa.int64()

    def rows(count: int | None) -> pa.Table:
        return pa.table({"id": [1], "part": ["a"], name: pa.array([count], whole).cast(found)})

    for fits in (last, None):
        named_batch(layout(), rows(fits), fills=True)
    for beyond in (last + 1, -last):
        with pytest.raises(Refused):
            named_batch(layout(), rows(beyond), fills=True)


@pytest.mark.parametrize("number", [1e39, -1e39, 3.4028235677973366e38])
@pytest.mark.parametrize("is_dictionary", [False, True])
def test_given_a_number_beyond_the_greatest_float32_when_it_comes_as_arrow_then_it_is_refused(
    number: float, is_dictionary: bool
) -> None:
    column = LayoutColumn(1, "n", parse_type("float32"), nullable=True, default=None)
    wide = pa.array([0.1, number], pa.float64())

    with pytest.raises(Refused, match="none of float32"):
        cast_column(column, wide.dictionary_encode() if is_dictionary else wide)


def test_given_floats_that_a_float32_can_hold_when_they_come_as_arrow_then_they_are_rounded() -> (
    None
):
    column = LayoutColumn(1, "n", parse_type("float32"), nullable=True, default=None)
    wide = pa.array([0.1, 3.4028234663852886e38, math.inf, -math.inf, None], pa.float64())

    found = cast_column(column, wide)

    assert found == wide.cast(pa.float32())


@pytest.mark.parametrize(
    "type", [pa.decimal128(38, 0), pa.decimal256(40, 0), pa.decimal256(76, 38)]
)
def test_given_decimals_that_wrap_when_scaled_up_then_they_are_refused_and_others_are_cast(
    type: pa.DataType,
) -> None:
    column = LayoutColumn(1, "n", parse_type("decimal(38,10)"), nullable=True, default=None)
    number = Decimal("12345678901234567890123456789012345678")

    fits = cast_column(column, pa.array([number.scaleb(-10).to_integral_value(), None], type))

    assert fits.to_pylist() == [number.scaleb(-10).to_integral_value(), None]
    with pytest.raises(Refused):
        cast_column(column, pa.array([number], type))


@pytest.mark.parametrize("key", [(1, "a"), [1, "a"], {"part": "a", "id": 1}])
def test_given_a_key_in_any_form_then_it_is_the_same_key(key: object) -> None:
    table = layout()

    assert table.key_shown(table.key_bytes(key)) == {"id": 1, "part": "a"}
    assert table.bound_values({"id": 1}) == table.bound_values(1) == (1,)


@pytest.mark.parametrize("key", [1, (1,), (1, "a", 2), {"id": 1}, {"part": "a"}, (1, 2), None])
def test_given_no_key_of_the_table_then_it_is_refused(key: object) -> None:
    with pytest.raises(Refused):
        layout().key_bytes(key)


LOSSES = {
    "007": ("int64", pa.array(["007"])),
    "7 as true": ("boolean", pa.array([7])),
    "rounded": ("decimal(10,2)", pa.array([0.125])),
    "too many digits": ("float64", pa.array([Decimal("0.12345678901234567890123")])),
    "an hour of a day": ("date", pa.array([datetime(2020, 1, 1, 5)])),  # noqa: DTZ001
    "no text": ("string", pa.array([b"\xff"])),
}


@pytest.mark.parametrize("why", LOSSES)
def test_given_values_of_a_former_type_when_they_do_not_fit_then_they_are_refused(why: str) -> None:
    """Arrow would round, cut off or guess."""
    type, values = LOSSES[why]

    with pytest.raises(Refused, match="x"):
        cast_column(LayoutColumn(1, "x", parse_type(type), True, None), values)


@pytest.mark.parametrize(
    ("type", "values", "said"),
    [
        ("int64", pa.array(["-5", None]), [-5, None]),
        ("string", pa.array([1e20, 0.1]), ["1e+20", "0.1"]),
        ("string", pa.array([5]), ["5"]),
        ("decimal(10,2)", pa.array([0.1]), [Decimal("0.10")]),
        ("int32", pa.array([1.0]), [1]),
        ("string", pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
        ("int64", pa.nulls(1), [None]),
        ("float64", pa.array([5], pa.uint8()), [5.0]),
    ],
    ids=str,
)
def test_given_values_of_a_former_type_when_they_fit_then_they_are_what_a_change_makes_of_them(
    type: str, values: pa.Array, said: list[object]
) -> None:
    assert (
        cast_column(LayoutColumn(1, "x", parse_type(type), True, None), values).to_pylist() == said
    )
