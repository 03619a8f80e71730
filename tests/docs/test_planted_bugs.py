"""Every bug that the rule of the harness names is planted by a test, and every planted one told."""

import re
from pathlib import Path

import pytest

from scripts.documents import planted, planted_suites
from scripts.documents.planted import finder_of, names_of, part_of
from scripts.documents.planted_suites import RULE, SUITES
from scripts.documents.references import Checkout

ROOT = Path(__file__).parents[2]
TESTS = {finder_of((key, name)) for key, suite in SUITES.items() for name in names_of(suite)}
RULE_2 = """
no fence; fence by value; read-set compare skipped; split commit; ambiguous treated as failed;
ambiguous retried; not resumed; resumed before re-locking; lock released in `finally`;
lease counted from receive time; wait W skipped after election;
watch resumes at rev instead of rev+1; no relist after compaction; write-only skipped;
backfill overwrites newer; cancel after commit; page end off by one; look before the append;
replay past the seal; floor not in the open order; pin let go with a batch in flight;
learner in the route first; two members of a commit batch that read each other's writes;
holder's registration expires early; absence read back taken for "not done";
tombstone dropped during a reorg
"""
"""The bugs that rule 2 of the harness names (docs/guarantees.md)."""


def test_given_the_rule_then_each_of_its_bugs_is_planted() -> None:
    named = [" ".join(bug.split()) for bug in RULE_2.split(";")]

    assert sorted(RULE) == sorted(named)
    for suite, name in {one for places in RULE.values() for one in places}:
        assert name in names_of(SUITES[suite])


@pytest.mark.parametrize("test", sorted(TESTS))
def test_given_a_bug_that_is_told_of_then_the_test_that_finds_it_exists(test: str) -> None:
    assert Checkout(ROOT).has_path(test)


def test_given_the_tests_then_each_that_plants_a_bug_is_told_of() -> None:
    planting = {
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w*_planted_\w*)", path.read_text(), re.M)
        if path != Path(__file__)
    }

    assert planting - TESTS == set()


def test_given_tests_of_several_parts_then_the_first_of_its_marks_says_where_one_runs() -> None:
    parts = {part_of(SUITES[name].test) for name in ("pages", "batches", "takeovers", "seeds")}

    assert part_of(SUITES["leases"].test) == "fast"
    assert parts == {"fast", "crash", "sim"}


def test_given_a_name_that_no_test_plants_when_the_page_is_made_then_it_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(planted_suites.RULE, "no fence", (("lives", "never planted"),))

    with pytest.raises(ValueError, match="never planted"):
        planted.pages()
