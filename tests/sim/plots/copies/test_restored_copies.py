"""A cluster with copies is lost and restored from its backup: no acknowledged row is, and each
region has its copies again."""

from collections import Counter

import pytest

from tests.sim.length import Life
from tests.sim.plots.copies.restored_copies import RESTORED_COPIES
from tests.sim.plots.restored import CLEAN, REFUSED
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(seed, RESTORED_COPIES) for seed in (41_000, 41_001, 41_002)]


def test_given_a_cluster_with_copies_when_it_is_restored_then_no_row_is_lost_and_copies_are_anew(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    total = sum((one.sometimes for one in outcomes), Counter[str]())
    assert total[CLEAN] == len(LIVES)
    assert total[REFUSED] >= len(LIVES)
