"""docs/invariants.md leaves no rule out and cites only what exists."""

from metasrv.check.invariants_page import INVARIANTS, PATH, numbers_of_rules, pages
from metasrv.check.rules import RULES


def test_given_the_rules_when_the_page_is_made_then_each_stands_for_an_invariant() -> None:
    numbers = numbers_of_rules()

    assert [rule.id for rule in RULES if not numbers[rule.id]] == []
    assert set(numbers) == {rule.id for rule in RULES}


def test_given_the_page_when_made_then_every_invariant_and_rule_is_on_it() -> None:
    page = pages()[PATH]

    assert all(f"**I{number}.** " in page for number in range(1, len(INVARIANTS) + 1))
    assert all(f"| `{rule.id}` | {rule.title}" in page for rule in RULES)
