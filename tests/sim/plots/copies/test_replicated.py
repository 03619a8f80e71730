"""Tables with copies in whole clusters: no acknowledged row is lost while the disk of one copy of a
set lives, no read is stale, and at the end each copy leads with every row."""

from collections import Counter

import pytest

from tests.sim.checks.copy_invariants import ADDED, JOINED, PROMOTED, REMOVED
from tests.sim.length import Life
from tests.sim.plots.copies.copy_faults import CUT_ONE_WAY, DISK_LOST
from tests.sim.plots.copies.replicated import LED_AT_THE_END, REPLICATED, WHOLE, WIDENED
from tests.sim.report import shown
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

FOUND = {
    1: "a truncate of a table with copies was refused by every node, for ever",
    2: "a failover waited for the lost disk of a copy that was to lead, and others had all rows",
    3: "a truncate waited for a leader that had started again, and its failover for the truncate",
    10_021: "a learner was sent no record, since those of a dead leader were in files by then",
    10_033: "a new schema waited for a copy that had left, and the order that said so for both",
    60_176: "a leader that was alone read under the promise of a copy that was to join it",
}
"""Seeds that found something once."""
LIVES = [Life(seed, REPLICATED) for seed in (*FOUND, 11)]
LEAST = {
    PROMOTED: 8,
    JOINED: 8,
    ADDED: 1,
    REMOVED: 1,
    DISK_LOST: 1,
    CUT_ONE_WAY: 1,
    WIDENED: 1,
    WHOLE: len(LIVES),
    LED_AT_THE_END: 2 * len(LIVES),
}
"""Counts without which the lives would prove little."""


def test_given_tables_with_copies_when_lived_then_no_row_is_lost_and_no_read_is_stale(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert not [shown(one) for one in outcomes if one.violations]
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
