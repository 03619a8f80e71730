"""For every rule, what breaks exactly that rule is named by it, and by no other."""

import pytest

from metasrv.check.collect import check
from metasrv.check.rule import Scope, Severity
from metasrv.check.rules import RULES
from metasrv.cli.tools.check import CLEAN, VIOLATED, exit_code
from tests.metasrv.check.breaking.breakages import BREAKAGES
from tests.metasrv.check.breaking.breaking import Breakage
from tests.metasrv.check.cluster import Cluster

RULE = {rule.id: rule for rule in RULES}


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: one.name)
async def test_given_one_thing_broken_when_checked_then_exactly_its_rule_names_it(
    cluster: Cluster, breakage: Breakage
) -> None:
    rule = RULE[breakage.rule]
    if rule.scope is Scope.STORE:  # the nodes are not told of keys edited under them
        cluster.reports, cluster.blind = {}, {"dn-1", "dn-2"}
    expected = await breakage.run(cluster)

    checked = await check(cluster.kv, cluster, cluster.clock, deep=True)

    subjects = {expected} if isinstance(expected, str) else expected
    others = {"unseen"} - {breakage.rule}
    found = {(one.rule, one.subject) for one in checked.violations if one.rule not in others}
    assert found == {(breakage.rule, subject) for subject in subjects}
    assert all(one.found and one.right for one in checked.violations)
    broken = rule.severity is Severity.VIOLATION
    assert exit_code(checked) == (VIOLATED if broken else CLEAN)
