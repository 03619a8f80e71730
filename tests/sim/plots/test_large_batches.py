"""Batches that one transaction cannot hold are what their commands are one by one, for every reader
and watcher, while leaders die between their keys and the log is cut below them."""

from collections import Counter

import pytest

from tests.sim.checks.catalog_watcher import TOLD
from tests.sim.cluster.cuts import CUT
from tests.sim.length import Life
from tests.sim.plots.large_batches import FLIPPED, LARGE_BATCHES, LEFT, LOOKED
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, LARGE_BATCHES) for seed in (2, 3, 4, 5, 6, 7, 1048)]
"""The last found that the check blamed keys of a large version whose update was deleted."""
LEAST = {FLIPPED: 20, LEFT: 3, LOOKED: 500, CUT: 200, TOLD: 200}
"""Counts without which the lives would prove little."""


def test_given_large_batches_when_leaders_die_and_the_log_is_cut_then_all_is_as_one_by_one(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
