"""Rows that a constraint rules out are named with what they say, and counted."""

import pyarrow as pa
import pytest

from dataplane.region.check.row_checks import RowRule, violations
from dataplane.region.format.columns import ColumnDef, row_schema
from metasrv_base.errors import Refused
from metasrv_base.expressions.check import asked
from metasrv_base.schema.types import parse_type
from metasrv_base.wire.node.jobs import RowCheck
from metasrv_base.wire.node.offenders import LISTED_CHARS_MAX, VALUE_CHARS_MAX, ViolatingRow

COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=True),
    ColumnDef(id=2, type="string", nullable=True),
)
TYPES = {column.id: parse_type(column.type) for column in COLUMNS}
ROWS = pa.table(
    [[b"a", b"b", b"c", b"d"], [1, 1, 2, 2], [5, None, -1, 7], ["x", None, "y", None]],
    schema=row_schema(COLUMNS),
)
POSITIVE = RowCheck(
    constraint=8, kind="check", columns=[1], expression=asked("n > 0", {"n": 1}, TYPES)
)
GIVEN = RowCheck(constraint=7, kind="not-null", columns=[1, 2])


def test_given_rows_when_judged_then_each_that_breaks_one_is_named_in_order() -> None:
    row_rules = [RowRule.of(check, COLUMNS) for check in (POSITIVE, GIVEN)]

    found, total = violations(ROWS, row_rules, 10)

    assert found == (
        ViolatingRow(constraint=7, row_key="62", values={"1": None, "2": None}),
        ViolatingRow(constraint=8, row_key="63", values={"1": -1}),
        ViolatingRow(constraint=7, row_key="64", values={"1": 7, "2": None}),
    )
    assert total == 3


def test_given_more_than_are_asked_for_when_judged_then_all_are_counted() -> None:
    row_rules = [RowRule.of(check, COLUMNS) for check in (GIVEN, POSITIVE)]

    found, total = violations(ROWS, row_rules, 2)

    assert [one.row_key for one in found] == ["62", "63"]
    assert (violations(ROWS, row_rules, 0), total) == (((), 3), 3)
    assert violations(ROWS.slice(0, 0), row_rules, 10) == ((), 0)


def test_given_values_that_do_not_convert_when_judged_then_their_rows_are_named_with_them() -> None:
    rows = pa.table(
        [[b"a", b"b", b"c", b"d"], [1, 1, 2, 2], [7, 200, None, -129], ["1", None, "01", "x"]],
        schema=row_schema(COLUMNS),
    )
    numbers = RowCheck(constraint=8, kind="convertible", columns=[1], to_type="int8")
    texts = RowCheck(constraint=7, kind="convertible", columns=[2], to_type="int64")

    found, total = violations(rows, [RowRule.of(check, COLUMNS) for check in (numbers, texts)], 3)

    assert found == (
        ViolatingRow(constraint=8, row_key="62", values={"1": 200}),
        ViolatingRow(constraint=7, row_key="63", values={"2": "01"}),
        ViolatingRow(constraint=8, row_key="64", values={"1": -129}),
    )
    assert total == 4


@pytest.mark.parametrize(
    "check",
    [
        RowCheck(constraint=7, kind="not-null", columns=[9]),
        RowCheck(constraint=7, kind="check", columns=[1]),
        RowCheck(constraint=7, kind="convertible", columns=[1]),
        RowCheck(constraint=7, kind="convertible", columns=[1, 2], to_type="int8"),
        RowCheck(constraint=7, kind="convertible", columns=[9], to_type="int8"),
        RowCheck(constraint=7, kind="convertible", columns=[1], to_type="date"),
    ],
)
def test_given_a_check_that_makes_no_sense_when_prepared_then_refused(check: RowCheck) -> None:
    with pytest.raises(Refused):
        RowRule.of(check, COLUMNS)


def test_given_rows_with_long_values_when_judged_then_these_are_listed_cut() -> None:
    rows = pa.table(
        [[b"a"], [1], [None], ["y" * 1_000_000]],
        schema=row_schema(COLUMNS),
    )

    (found,), _ = violations(rows, [RowRule.of(GIVEN, COLUMNS)], 10)

    assert found.values["2"] == f"{'y' * VALUE_CHARS_MAX}... (1000000 characters)"


def test_given_very_many_long_keys_when_judged_then_the_list_is_bounded_and_all_are_counted() -> (
    None
):
    count = 1_000
    keys = [b"%04d" % n + b"k" * 4_000 for n in range(count)]
    columns = [keys, [1] * count, [None] * count, ["x"] * count]
    rows = pa.table(columns, schema=row_schema(COLUMNS))

    found, total = violations(rows, [RowRule.of(GIVEN, COLUMNS)], count)

    assert total == count
    assert 0 < len(found) < count
    assert sum(len(one.model_dump_json()) for one in found) <= LISTED_CHARS_MAX
