"""Python values as constants, and those that no column holds."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum, StrEnum
from fractions import Fraction

import numpy as np
import pytest

from metasrv.dbapi.errors import DataError
from metasrv.dbapi.literals import literal


class Word(StrEnum):
    QUOTE = "'; drop table t; --"


class Number(IntEnum):
    ONE = 1


class Deceiver(str):
    """Its own methods lie."""

    __slots__ = ()

    def __str__(self) -> str:
        return "x'; drop table t; --"

    def replace(self, *_: object) -> str:
        return "'; drop table t; --"


class Fine(datetime):
    """As the timestamps of pandas are."""

    nanosecond = 1


INSTANT = datetime(2013, 1, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "-5"),
        (Number.ONE, "1"),
        (np.int64(-7), "-7"),
        (1e22, "1e+22"),
        (np.float32(0.5), "0.5"),
        (np.float64(2.0), "2.0"),
        (float("nan"), "'NaN'"),
        (float("-inf"), "'-Infinity'"),
        (Decimal("-12.50"), "-12.50"),
        (Decimal("1E+3"), "1000"),
        ("it's", "'it''s'"),
        (Word.QUOTE, "'''; drop table t; --'"),
        (Deceiver("it's"), "'it''s'"),
        (b"\x00'", "X'0027'"),
        (bytearray(b"\xff"), "X'ff'"),
        (memoryview(b"\xff"), "X'ff'"),
        (date(2013, 1, 31), "'2013-01-31'"),
        (time(1, 2, 3, 4), "'01:02:03.000004'"),
        (INSTANT, "'2013-01-31T23:59:59Z'"),
        (INSTANT.replace(microsecond=120_000), "'2013-01-31T23:59:59.12Z'"),
        (INSTANT.astimezone(timezone(timedelta(hours=2))), "'2013-01-31T23:59:59Z'"),
        (Fine(2013, 1, 31, tzinfo=UTC), "'2013-01-31T00:00:00.000000001Z'"),
        (datetime(1, 1, 1, tzinfo=UTC), "'0001-01-01T00:00:00Z'"),
    ],
)
def test_given_a_value_then_its_constant_is_that_of_sql(value: object, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (datetime(2013, 1, 31), "time zone"),  # noqa: DTZ001
        (Decimal("NaN"), "not finite"),
        (Decimal("1E+1000000"), "digits"),
        (10**500, "digits"),
        ("\ud800", "surrogate"),
        (object(), "object cannot be bound"),
        ([1], "list cannot be bound"),
        (Fraction(1, 3), "Fraction cannot be bound"),
        (1j, "complex cannot be bound"),
        (timedelta(1), "timedelta cannot be bound"),
    ],
)
def test_given_a_value_that_no_column_holds_then_it_is_not_bound(
    value: object, reason: str
) -> None:
    with pytest.raises(DataError, match=reason):
        literal(value)
