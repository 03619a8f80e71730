"""Preferred zones that change beside moves, switches and failovers: leaders follow, all comes to
rest, and no acknowledged row is lost."""

from collections import Counter

import pytest

from tests.sim.checks.copy_invariants import ADDED, JOINED, PROMOTED
from tests.sim.length import Life
from tests.sim.plots.copies.preferred import ALTERED, FOLLOWED, PREFERRED
from tests.sim.report import shown
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, PREFERRED) for seed in (1, 2)]
LEAST = {ALTERED: 8, FOLLOWED: 4, PROMOTED: 10, JOINED: 4, ADDED: 4}
"""Counts without which the lives would prove little."""


def test_given_zones_that_change_when_faults_are_over_then_leaders_are_in_the_best_and_stay(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert not [shown(one) for one in outcomes if one.violations]
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
