"""Copies that are moved, added and removed beside switches, alters and failovers: all comes to rest
within a bounded time, and no acknowledged row is lost."""

from collections import Counter

import pytest

from tests.sim.checks.copy_invariants import ADDED, JOINED, PROMOTED, REMOVED
from tests.sim.length import Life
from tests.sim.plots.copies.copy_faults import DISK_LOST
from tests.sim.plots.copies.moved_copies import (
    COPIES_KEPT,
    COPIES_MOVED,
    INDEXED,
    MOVED_COPIES,
    NUMBERED,
    SETTLED,
    SWITCHED,
)
from tests.sim.report import shown
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

FOUND = {
    8: "a change waited for a copy that was gone, and the order that said so waited behind it",
    17: "a promoted leader took no schema below the minimum, and no copy was told to follow it",
    20_000: "the same number of copies once more stopped writes, which a leader alone still took",
    20_026: "a move waited for ever for a copy, since another one had been removed as it began",
    60_102: "a node borrowed the lost root of a copy that had not led, and its leader was back",
    61_004: "a leader that borrowed, and that a copy had joined, never opened again",
    61_058: "orders waited behind a group in doubt, and the copy that would end it for one of them",
    61_117: "a truncate waited for a leader that had started again, and its failover for that",
}
"""Seeds that found something once."""
LIVES = [Life(seed, MOVED_COPIES) for seed in (*FOUND, 2)]
LEAST = {
    PROMOTED: 4,
    JOINED: 8,
    ADDED: 8,
    REMOVED: 8,
    DISK_LOST: 1,
    COPIES_MOVED: 2,
    COPIES_KEPT: 1,
    SWITCHED: 2,
    NUMBERED: 2,
    INDEXED: 1,
    SETTLED: 6 * len(LIVES),
}
"""Counts without which the lives would prove little."""


def test_given_copies_that_move_when_faults_are_over_then_all_comes_to_rest(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert not [shown(one) for one in outcomes if one.violations]
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
