"""No rule without what breaks it: `make check` runs this, so it needs no cluster."""

from metasrv.check.rules import RULES
from tests.metasrv.check.breaking.breakages import BREAKAGES


def test_given_the_rules_then_each_is_broken_by_a_test_and_has_a_name_of_its_own() -> None:
    names = [rule.id for rule in RULES]

    assert len(set(names)) == len(names)
    assert {breakage.rule for breakage in BREAKAGES} == set(names)


def test_given_the_breakages_then_each_has_a_name_of_its_own() -> None:
    assert len({breakage.name for breakage in BREAKAGES}) == len(BREAKAGES)
