"""Nodes with only copies are drained in whole clusters: no acknowledged row is lost, no read is
stale, and each region has one copy again at the end."""

from collections import Counter

import pytest

from tests.sim.checks.copy_invariants import ADDED, JOINED, REMOVED
from tests.sim.length import Life
from tests.sim.plots.copies.drained import BEGUN, DRAINED, EMPTIED, MOVED_DROPPED
from tests.sim.report import shown
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

FOUND = {6: "the folder of a source that a failover had borrowed was deleted by its move"}
"""Seeds that found something once."""
LIVES = [Life(seed, DRAINED) for seed in (*FOUND, 15, 19)]
LEAST = {BEGUN: 8, EMPTIED: 5, ADDED: 5, JOINED: 5, REMOVED: 5, MOVED_DROPPED: 1}
"""Counts without which the lives would prove little."""


def test_given_only_copies_when_nodes_are_drained_then_no_row_is_lost_and_no_read_is_stale(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert not [shown(one) for one in outcomes if one.violations]
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
