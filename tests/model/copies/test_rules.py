"""Each rule of regions with copies is needed: without it, the model finds what goes wrong."""

from dataclasses import fields, replace

import pytest

from tests.model.copies.explore import explore, explore_progress
from tests.model.copies.faults import CopyFault
from tests.model.copies.mutants import JOINING, MUTANTS, PROMOTED_TWICE
from tests.model.copies.proofs import explored
from tests.model.copies.rules import PROTOCOL, Rules
from tests.model.copies.world import Bounds, Setting

pytestmark = pytest.mark.slow

STALLED = Bounds(2, writes=2, epochs=1, budget=1, flushes=True, stalls=True)
"""The second copy flushes no more, and has room for one of two records."""


@pytest.mark.parametrize("name", MUTANTS)
def test_given_a_rule_removed_when_explored_then_its_fault_is_found(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = MUTANTS[name]

    found = mutant.explored()

    assert found.fault is mutant.fault, str(found)
    with capsys.disabled():
        print(f"\n{name}: {found}", end="")


@pytest.mark.parametrize(
    "name", [name for name, mutant in MUTANTS.items() if mutant.bounds != PROMOTED_TWICE]
)
def test_given_the_bounds_of_a_mutant_when_no_rule_is_off_then_they_hold(name: str) -> None:
    found = explored(MUTANTS[name].bounds)

    assert found.fault is None, str(found)


def test_given_a_copy_that_stays_over_its_budget_when_it_leaves_then_writes_go_on() -> None:
    found = explore_progress(Setting(STALLED))

    assert found.fault is None, str(found)


def test_given_a_copy_over_its_budget_that_never_leaves_then_writes_stand_still() -> None:
    found = explore_progress(Setting(STALLED, replace(PROTOCOL, slow_leaves=False)))

    assert found.fault is CopyFault.STUCK, str(found)


def test_given_the_rules_then_each_is_removed_by_a_test() -> None:
    removed = {mutant.rule for mutant in MUTANTS.values()}

    others = {"slow_leaves", "removes_leader", "eligible_needs_lease"}
    assert removed | others == {field.name for field in fields(Rules)}


def test_given_the_faults_then_each_is_found_by_removing_a_rule() -> None:
    found = {mutant.fault for mutant in MUTANTS.values()}

    assert found | {CopyFault.STUCK} == set(CopyFault)


def test_given_a_set_that_has_not_shrunk_when_a_disk_is_lost_then_no_region_is_stranded() -> None:
    found = explore(Setting(JOINING), {CopyFault.STRANDED})

    assert found.fault is None, str(found)


def test_given_a_fault_then_its_trace_is_the_shortest_and_can_be_read() -> None:
    found = MUTANTS["a set that grows in the route first"].explored()

    assert found.trace == (
        "A requires B, asks to add it",
        "A orders write 0; write 0 is acknowledged",
        "route: B joins the set",
    )
