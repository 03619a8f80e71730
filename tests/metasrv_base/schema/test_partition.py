"""Rows find their region: the same one for ever, one by one or many at once."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from metasrv_base.errors import Refused
from metasrv_base.schema.partition import HashRule, PartitionRule, RangeRule, region_number, router
from metasrv_base.schema.scalars import JsonScalar
from metasrv_base.schema.types import parse_type
from tests.metasrv_base.schema import golden

INT64, STRING, AT = parse_type("int64"), parse_type("string"), parse_type("timestamp(ms)")
RULE: TypeAdapter[PartitionRule] = TypeAdapter(PartitionRule)


def test_given_the_stored_format_when_applied_then_it_is_the_golden_file() -> None:
    assert golden.partition() == golden.read("partition.txt")


@pytest.mark.parametrize(
    "rule",
    [
        HashRule(columns=(1, 3), count=4),
        RangeRule(columns=(2,), bounds=((1,), (2,))),
        RangeRule(columns=(2, 1), bounds=((True, 1.0), ("x", -1))),
    ],
    ids=["hash", "range", "kinds"],
)
def test_given_a_rule_when_stored_then_it_comes_back(rule: PartitionRule) -> None:
    back = RULE.validate_json(RULE.dump_json(rule))

    assert back == rule
    assert RULE.dump_json(back) == RULE.dump_json(rule)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text()), min_size=1), st.data())
def test_given_rows_when_routed_at_once_then_each_is_where_it_is_alone(
    some: list[tuple[int, str]], data: st.DataObject
) -> None:
    bounds = tuple(
        sorted(
            data.draw(st.sets(st.tuples(st.integers(-9, 9), st.text()), min_size=1)),
            key=lambda bound: (bound[0], bound[1].encode()),
        )
    )
    rules: list[PartitionRule] = [
        HashRule(columns=(1, 2), count=5),
        RangeRule(columns=(1, 2), bounds=bounds),
    ]
    rule = data.draw(st.sampled_from(rules))
    routed = router(rule, [INT64, STRING])

    numbers = routed.numbers(
        [pa.array([row[0] for row in some], pa.int64()), pa.array([row[1] for row in some])]
    )

    assert numbers.to_pylist() == [routed.number(row) for row in some]
    assert all(0 <= number < rule.regions for number in numbers.to_pylist())


def test_given_numbers_in_a_row_when_hashed_then_they_spread_evenly() -> None:
    routed = router(HashRule(columns=(1,), count=4), [INT64])

    shares = Counter(routed.numbers([pa.array(range(40_000))]).to_pylist())

    assert set(shares) == {0, 1, 2, 3}
    assert all(9_600 < share < 10_400 for share in shares.values())


def test_given_bounds_when_routed_then_a_bound_begins_its_region() -> None:
    rule = RangeRule(columns=(1,), bounds=(("2013-04-01T00:00:00Z",), ("2013-07-01T00:00:00Z",)))

    numbers = [
        region_number(rule, [AT], [at])
        for at in (1364774399999, 1364774400000, 1372636799999, 1372636800000)
    ]

    assert rule.regions == 3
    assert numbers == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("bounds", "pointer"),
    [
        (((2,), (1,)), "/partition/bounds/1"),
        (((1,), (1,)), "/partition/bounds/1"),
        (((1,), (2, 3)), "/partition/bounds/1"),
        ((("1",),), "/partition/bounds/0/0"),
        (((1,), (True,)), "/partition/bounds/1/0"),
    ],
)
def test_given_bounds_that_do_not_rise_or_fit_when_made_ready_then_they_are_refused(
    bounds: tuple[tuple[JsonScalar, ...], ...], pointer: str
) -> None:
    with pytest.raises(Refused) as refused:
        router(RangeRule(columns=(1,), bounds=bounds), [INT64], "/partition")

    assert refused.value.facts["pointer"] == pointer


def test_given_a_bound_that_is_nan_when_made_ready_then_it_is_refused() -> None:
    with pytest.raises(Refused, match="NaN"):
        router(RangeRule(columns=(1,), bounds=(("NaN",),)), [parse_type("float64")])
