"""The store is away for a minute in the midst of a change, and nobody does anything about it."""

from functools import partial

import pytest

from metasrv_base.elements.states import ElementState
from tests.sim.cluster.away import (
    CHANGED,
    DONE_AFTERWARDS,
    DONE_MEANWHILE,
    LENGTH,
    REFUSED_MEANWHILE,
    Away,
    Scene,
)
from tests.sim.length import Life
from tests.sim.runs import Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

LIFE = Life(1, LENGTH)
SCENES = [
    Scene("index", ElementState.WRITE_ONLY, is_silent=True),
    Scene("index", ElementState.DELETE_ONLY, is_silent=False),
    Scene("column", ElementState.WRITE_ONLY, is_silent=True),
]


@pytest.mark.case("online 80")
@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_given_a_change_on_its_way_when_the_store_is_away_a_minute_then_all_goes_on_by_itself(
    scene: Scene, sim_processes: Processes
) -> None:
    (outcome,) = sim_processes.lives([LIFE], partial(Away, scene=scene))

    assert not outcome.violations, outcome.violations
    counts = [CHANGED, DONE_MEANWHILE, REFUSED_MEANWHILE, DONE_AFTERWARDS]
    assert all(outcome.sometimes[what] for what in counts), outcome.sometimes
