"""Conditions on rows: what is read, what is refused, and two ways to compute that agree."""

import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metasrv_base.errors import Refused
from metasrv_base.expressions.check import Check, asked
from metasrv_base.expressions.parse import parse
from metasrv_base.expressions.text import restored, stored, text_of
from metasrv_base.schema.types import parse_type
from tests.metasrv_base.expressions.oracle import breaks

GOLDEN = Path("tests/golden/base/expressions.txt")
TYPES = {
    1: parse_type("int32"),
    2: parse_type("int64"),
    3: parse_type("float64"),
    4: parse_type("decimal(8,2)"),
    5: parse_type("string"),
    6: parse_type("boolean"),
    7: parse_type("date"),
    8: parse_type("timestamp(ns)"),
    9: parse_type("binary"),
}
NAMES = {"i": 1, "n": 2, "f": 3, "d": 4, "s": 5, "b": 6, "day": 7, "at": 8, "raw": 9}
OF_ID = {id: name for name, id in NAMES.items()}


def sent(check: Check) -> Check:
    """As it arrives at a process that looks at rows."""
    found = pickle.loads(pickle.dumps(check))
    assert isinstance(found, Check)
    return found


def broken(text: str, **row: Any) -> bool:
    values = {
        id: pa.array([row.get(name)], pa.int64()).cast(TYPES[id].arrow)
        if name == "at"
        else pa.array([row.get(name)], TYPES[id].arrow)
        for name, id in NAMES.items()
    }
    (found,) = sent(Check.of(asked(text, NAMES, TYPES), TYPES)).broken(values).to_pylist()
    return bool(found)


@pytest.mark.parametrize(
    ("text", "row", "wanted"),
    [
        ("i > 3", {"i": 3}, True),
        ("i > 3", {"i": None}, False),
        ("i > 3 and s = 'x'", {"i": 3, "s": None}, True),
        ("i > 3 or s = 'x'", {"i": 3, "s": None}, False),
        ("not (i > 3 or s = 'x')", {"i": 4, "s": None}, True),
        ("i is not null", {"i": None}, True),
        ("s NOT IN ('a', 'b')", {"s": "b"}, True),
        ("s in ('it''s')", {"s": "it's"}, False),
        ("d between 1 and 2.5", {"d": Decimal("2.51")}, True),
        ("d + i <> 3.50", {"d": Decimal("1.50"), "i": 2}, True),
        ("f > d", {"f": 0.25, "d": Decimal("0.25")}, True),
        ("f = f", {"f": float("nan")}, True),
        ("day < '2013-02-01'", {"day": None}, False),
        ("at >= '1970-01-01T00:00:00.000000002Z'", {"at": 1}, True),
        ("raw = 'YQ=='", {"raw": b"b"}, True),
        ("b", {"b": False}, True),
        ("b = true", {"b": True}, False),
        ("1 / i > 0", {"i": 0}, True),
        ("n * n > 0", {"n": 2**62}, True),
        ("- i > 0 and i - -3 < 0", {"i": -4}, False),
        ("n = -9223372036854775807", {"n": -(2**63) + 1}, False),
        ("n < 99999999999999999999", {"n": 2**63 - 1}, False),
    ],
)
def test_given_a_condition_when_a_row_is_judged_then_as_sql_says(
    text: str, row: dict[str, Any], wanted: bool
) -> None:
    assert broken(text, **row) is wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the end"),
        ("i >", "the end"),
        ("i > 3 3", "'3' at character 6"),
        ("i in 3", "expected (,"),
        ("i not 3", "in or between"),
        ("nope > 3", "a column of the table"),
        ("i; drop table t", "';' at character 1"),
        ("__import__('os')", "__import__"),
        ("length(s) > 3", "length"),
        ("i", "a condition"),
        ("i and b", "a condition beside"),
        ("s > 3", "values of one sort"),
        ("day = at", "values of one sort"),
        ("s + 1 > 2", "a number to compute with"),
        ("b < true", "true and false"),
        ("day > 'tomorrow'", "2013-01-31"),
        ("d / 2 > 1", "a division of decimals"),
        ("1 < 2", "names a column"),
        ("i = " + "(" * 33 + "1" + ")" * 33, "brackets"),
        ("i = 1 or " * 80 + "b", "words"),
        ("s = '" + "x" * 4096 + "'", "characters"),
        ("d * d * d * d * d * d * d * d * d * d > 1", "digits"),
    ],
)
def test_given_a_text_that_is_no_condition_then_it_is_refused_and_said_why(
    text: str, told: str
) -> None:
    with pytest.raises(Refused) as refused:
        asked(text, NAMES, TYPES, "/here")

    assert refused.value.facts["pointer"] == "/here"
    assert told in str(refused.value)


def test_given_names_that_are_words_then_they_stand_in_quotes() -> None:
    node = parse('"in" > 3 and "a-b" is null', {"in": 1, "a-b": 2})

    shown = text_of(node, {1: "or", 2: "a-b"}.__getitem__)

    assert stored(node) == "c1 > 3 and c2 is null"
    assert shown == '"or" > 3 and "a-b" is null'


def test_given_every_form_when_stored_then_its_text_is_as_it_always_was() -> None:
    for line in GOLDEN.read_text().splitlines():
        text, _, found = line.partition(" => ")
        assert asked(text, NAMES, TYPES) == found
        assert stored(restored(found)) == found


# ---- any condition

numbers = st.sampled_from(["i", "n", "f", "d", "0", "1", "2", "1.5", "0.25", "2e0"])


def _computed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, st.sampled_from("+-*"), inner)
    return pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})") | inner.map(lambda one: f"-{one}")


values = st.recursive(numbers, _computed, max_leaves=4)
compare = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
atoms = (
    st.tuples(values, compare, values).map(" ".join)
    | st.sampled_from(["b", "i / n > 1", "n / i <= n", "s < 'b'", "b <> true"])
    | values.map(lambda one: f"{one} is null")
    | st.tuples(values, values).map(lambda p: f"{p[0]} not in (1, {p[1]})")
    | st.tuples(values, values).map(lambda p: f"{p[0]} between {p[1]} and 2")
    | st.sampled_from(["s in ('a', 'c')", "s is not null", "not b"])
)
conditions = st.recursive(
    atoms,
    lambda inner: st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
        lambda p: f"({p[0]}) {p[1]} not ({p[2]})"
    ),
    max_leaves=4,
)
rows = st.fixed_dictionaries(
    {
        1: st.none() | st.integers(-2, 2) | st.just(2**31 - 1),
        2: st.none() | st.integers(-2, 2) | st.sampled_from([2**63 - 1, -(2**63)]),
        3: st.none() | st.sampled_from([0.0, -0.0, 0.25, -2.0, float("nan"), float("inf")]),
        4: st.none() | st.integers(-4, 4).map(lambda one: Decimal(one * 25) / 100),
        5: st.none() | st.sampled_from("abc"),
        6: st.none() | st.booleans(),
    }
)


@pytest.mark.slow
@settings(max_examples=300)
@given(conditions, st.lists(rows, min_size=1, max_size=5))
def test_given_any_condition_and_rows_then_a_walk_of_the_tree_says_the_same(
    text: str, given_rows: list[dict[int, Any]]
) -> None:
    found = asked(f"b and false or ({text})", NAMES, TYPES)
    arrays = {id: pa.array([row[id] for row in given_rows], TYPES[id].arrow) for id in range(1, 7)}

    told = Check.of(found, TYPES).broken(arrays).to_pylist()

    assert stored(parse(text_of(restored(found), OF_ID.__getitem__), NAMES)) == found
    assert told == [breaks(restored(found), row) for row in given_rows]
