"""Placements with node filters, labels of nodes and engines change beside failovers and drains: no
region goes to a node that is excluded."""

from collections import Counter

import pytest

from tests.sim.checks.placement_invariants import BY_ENGINE, STRICT, TARGETED
from tests.sim.length import Life
from tests.sim.plots.placed import ALTERED, DRAINED, PLACED
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, PLACED) for seed in (2, 8)]
LEAST = {STRICT: 10, TARGETED: 2, BY_ENGINE: 2, ALTERED: 5, DRAINED: 3}
"""Counts without which the lives would prove little."""


def test_given_node_filters_when_nodes_are_failed_over_and_drained_then_none_is_left_aside(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
