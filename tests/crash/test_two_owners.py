"""Two owners of one procedure within a term: of two copies of a step one is taken.

Every transaction of a step of every scenario is committed again by a second owner: at once, and
behind the next one. The fence is that of the leader, so it lets both pass.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

import pytest

from tests.crash.enumeration import BY_NAME, Harness, life
from tests.crash.second_owner import SecondOwner
from tests.crash.side_by_side import side_by_side
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS

pytestmark = pytest.mark.crash

SOUND = Harness()
BEHIND_MAX = 1  # transactions of others that come between


def by_two(name: str, second: SecondOwner, harness: Harness = SOUND) -> list[str]:
    """What is wrong with a life in which *second* sends a step again."""
    own = replace(second)
    run = life(BY_NAME[name], None, replace(harness, make_committer=own.makes))
    return [*run.wrong, *["a second owner's step was taken"] * bool(own.was_taken)]


@cache
def steps_of(name: str) -> int:
    """Transactions of steps in a life without faults."""
    counter = SecondOwner()
    assert life(BY_NAME[name], None, Harness(make_committer=counter.makes)).wrong == ()
    return counter.sent


def seconds_of(name: str) -> Iterator[SecondOwner]:
    """One that sends again at once or behind the next, for each transaction of a step."""
    for at in range(steps_of(name)):
        yield from (SecondOwner(at, behind) for behind in range(BEHIND_MAX + 1))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_given_two_owners_of_a_procedure_when_both_commit_a_step_then_one_is_taken(
    scenario: Scenario,
) -> None:
    seconds = list(seconds_of(scenario.name))

    found = side_by_side(partial(by_two, scenario.name), seconds)

    assert seconds
    wrong = [(one, what) for one, what in zip(seconds, found, strict=True) if what]
    assert wrong[:3] == []
