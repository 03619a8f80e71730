"""Every case of the other system has a test here or a reason, and most have a test."""

import ast
from pathlib import Path

import pytest

from scripts.conformance import marked, shown_cases
from scripts.conformance_cases import APPLY_MIN, WHY_NOT, cases

ROOT = Path(__file__).parents[2]


def test_given_the_cases_then_each_has_a_test_or_a_reason_and_never_both() -> None:
    shown = shown_cases(ROOT / "tests")

    assert sorted(cases()) == list(range(1, 110))
    assert cases().keys() - shown.keys() - WHY_NOT.keys() == set()
    assert shown.keys() & WHY_NOT.keys() == set()


def test_given_the_cases_then_enough_of_them_apply() -> None:
    assert len(shown_cases(ROOT / "tests")) >= APPLY_MIN


@pytest.mark.parametrize("text", ["greptime 0", "greptime 110", "greptime", "other 1", "12"])
def test_given_a_mark_of_no_case_when_read_then_it_is_refused(text: str) -> None:
    tree = ast.parse(f"@pytest.mark.case({text!r})\ndef test_x(): ...")

    with pytest.raises(ValueError, match="no such case"):
        list(marked(tree))


def test_given_a_mark_of_two_cases_when_read_then_both_are_shown() -> None:
    tree = ast.parse('@pytest.mark.case("greptime 1", "greptime 109")\ndef test_x(): ...')

    assert list(marked(tree)) == [("test_x", 1), ("test_x", 109)]
