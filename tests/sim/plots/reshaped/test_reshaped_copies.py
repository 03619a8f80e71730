"""Tables with copies change their shape, take files, and are read at copies, while copies move,
sets change and nodes fail: rows, entries and the schema are those of the model."""

from collections import Counter

import pytest

from tests.sim.checks.copy_invariants import ADDED, JOINED, LEFT, PROMOTED, REMOVED
from tests.sim.cluster.frontends import LAGGING
from tests.sim.cluster.net import UNHEARD
from tests.sim.cluster.nodes import FAILED_SYNC
from tests.sim.length import Life
from tests.sim.plots.copies.copy_faults import DISK_LOST, LEFT_TOGETHER
from tests.sim.plots.copies.moved_copies import COPIES_MOVED, NUMBERED, SWITCHED
from tests.sim.plots.copies.replicated import LED_AT_THE_END
from tests.sim.plots.reshaped.importing import IMPORTED
from tests.sim.plots.reshaped.lagging import BY_INDEX, BY_KEY, WHOLE
from tests.sim.plots.reshaped.reshaped_copies import LOWERED, PLACED_ANEW, RESHAPED_COPIES
from tests.sim.plots.reshaped.reshaping import EMPTIED, RENAMED, UNDROPPED
from tests.sim.report import shown
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

FOUND = {
    24: "a drain waited for a dropped table whose leader had lost its disk, beside a copy in sync",
}
"""Seeds that found something once."""
LIVES = [Life(seed, RESHAPED_COPIES) for seed in (*FOUND, 41, 43)]
LEAST = {
    **dict.fromkeys((PROMOTED, JOINED, LEFT, ADDED, REMOVED), 5 * len(LIVES)),
    **dict.fromkeys((RENAMED, UNDROPPED, EMPTIED, NUMBERED, LOWERED, DISK_LOST, SWITCHED), 1),
    **dict.fromkeys((COPIES_MOVED, IMPORTED, PLACED_ANEW), 3),
    **dict.fromkeys((BY_KEY, WHOLE, BY_INDEX, f"{LAGGING}copy", f"{LAGGING}leader"), 10),
    **dict.fromkeys((FAILED_SYNC, UNHEARD, LEFT_TOGETHER), 1),
    "a procedure ended: alter_table": 5 * len(LIVES),
    "a job that made entries": 2,
    "a region with an index was looked at": 20,
    LED_AT_THE_END: 3 * len(LIVES),
}
"""Counts without which the lives would prove little."""


def test_given_copies_that_move_when_their_tables_change_shape_then_all_is_as_the_model_has_it(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert not [shown(one) for one in outcomes if one.violations]
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert not {what: total[what] for what, least in LEAST.items() if total[what] < least}
