"""Every case of every catalogue has a test here or a reason, and most have a test."""

import ast
from pathlib import Path

import pytest

from scripts.documents.catalog_cases import CATALOG, SHOWN_MIN
from scripts.documents.catalogue import Catalogue
from scripts.documents.conformance import CATALOGUES, marked, shown_cases
from scripts.documents.conformance_cases import APPLY_MIN, GREPTIME

ROOT = Path(__file__).parents[2]
SIZES = {"greptime": 127, "input": 108, "online": 80, "catalog": 150}


@pytest.mark.parametrize("catalogue", CATALOGUES, ids=lambda one: one.source)
@pytest.mark.slow
def test_given_the_cases_then_each_has_a_test_or_a_reason_and_never_both(
    catalogue: Catalogue,
) -> None:
    shown = shown_cases(ROOT / "tests", catalogue)
    cases = catalogue.cases()

    assert sorted(cases) == list(range(1, SIZES[catalogue.source] + 1))
    reasons = {**catalogue.why_not, **catalogue.not_built}
    assert cases.keys() - shown.keys() <= reasons.keys()
    assert shown.keys() & reasons.keys() == set(), "what is built carries neither"
    assert catalogue.why_not.keys() & catalogue.not_built.keys() == set()
    assert catalogue.in_part.keys() <= shown.keys()


def test_given_the_cases_then_enough_of_them_apply() -> None:
    assert len(shown_cases(ROOT / "tests", GREPTIME)) >= APPLY_MIN
    assert len(shown_cases(ROOT / "tests", CATALOG)) >= SHOWN_MIN


@pytest.mark.parametrize(
    "text",
    ["greptime 0", "greptime 128", "greptime", "other 1", "12", "input 108-109", "input 1-", "x-y"],
)
def test_given_a_mark_of_no_case_when_read_then_it_is_refused(text: str) -> None:
    tree = ast.parse(f"@pytest.mark.case({text!r})\ndef test_x(): ...")

    with pytest.raises(ValueError, match="no such case"):
        list(marked(tree))


def test_given_a_mark_of_some_cases_when_read_then_each_is_shown() -> None:
    tree = ast.parse('@pytest.mark.case("greptime 1", "input 107-108")\ndef test_x(): ...')

    assert list(marked(tree)) == [
        ("test_x", "greptime", 1),
        ("test_x", "input", 107),
        ("test_x", "input", 108),
    ]
