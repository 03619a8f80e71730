"""A cluster is lost and restored from its backup, and adopts the nodes."""

from collections import Counter

import pytest

from tests.sim.length import Life
from tests.sim.plots.restored import CLEAN, GONE, MOVED, REFUSED, RESTORED, RESUMED
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, RESTORED) for seed in (2, 3, 128, 129, 1070)]
"""Each found a fault: an index that was being filled when it was backed up was filled for ever, a
drop waited for a table that the restore had purged, a failover during the adoption was judged as a
wrong place, a restore that was run again lost to a late start of a killed run, and the check looked
for the files of a dropped table at the epoch of an adoption."""


def test_given_a_cluster_that_is_lost_when_it_is_restored_then_nothing_is_given_twice_or_lost(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert total[CLEAN] == len(LIVES)
    assert all(total[what] for what in (MOVED, GONE, RESUMED, REFUSED)), total
