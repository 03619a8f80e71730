"""The log of the catalog is cut while everything goes on: what is left is the whole catalog."""

import pytest

from tests.sim.cluster.cuts import CUT, Cuts
from tests.sim.length import FIRST_SHORT, SHORT, Life
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIVES = [Life(FIRST_SHORT + number, SHORT) for number in range(3)]


def test_given_a_log_that_is_cut_when_lives_go_on_then_nothing_is_wrong(
    sim_processes: Processes,
) -> None:
    outcomes = sim_processes.lives(LIVES, Cuts)

    assert [one.violations for one in outcomes] == [()] * len(LIVES)
    assert sum(one.sometimes[CUT] for one in outcomes) > len(LIVES)
