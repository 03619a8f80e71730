"""Two owners of one procedure within a term: of two copies of a step one is taken.

Every transaction of a step of every scenario is committed again by a second owner: at once, and
behind the next one. The fence is that of the leader, so it lets both pass.
"""

from functools import partial

import pytest

from tests.crash.side_by_side import side_by_side
from tests.crash.two_owners import by_two, seconds_of
from tests.procedures.harness.scenario import Scenario
from tests.procedures.harness.scenarios import SCENARIOS

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_given_two_owners_of_a_procedure_when_both_commit_a_step_then_one_is_taken(
    scenario: Scenario,
) -> None:
    seconds = list(seconds_of(scenario.name))

    found = side_by_side(partial(by_two, scenario.name), seconds)

    assert seconds
    wrong = [(one, what) for one, what in zip(seconds, found, strict=True) if what]
    assert wrong[:3] == []
