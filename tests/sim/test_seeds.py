"""The system under seeds: every one a cluster, its clients and its faults, in virtual time.

More of them: `make sim SEEDS=10000`; one of them again: `make sim SEEDS=1 FIRST=17`.
"""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.sim.corpus import FOUND
from tests.sim.lives import Processes
from tests.sim.plot import Outcome
from tests.sim.report import never, shown

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

SEEDS = range(1, 21)
OPERATIONS_MIN, FAULTS_MIN = 200, 8
Lived = Callable[[int], Outcome]


@pytest.fixture(scope="module")
def lived(sim_processes: Processes) -> Lived:
    """A seed's outcome; each was lived once."""
    seeds = sorted({*SEEDS, *FOUND})
    return dict(zip(seeds, sim_processes.lives(seeds), strict=True)).__getitem__


@pytest.mark.case("online 76")
@pytest.mark.parametrize("seed", sorted({*SEEDS, *FOUND}))
def test_given_a_seed_when_it_has_been_lived_then_nothing_was_wrong(
    seed: int, lived: Lived
) -> None:
    outcome = lived(seed)

    assert not outcome.violations, shown(outcome)


@pytest.mark.parametrize("seed", SEEDS)
def test_given_a_seed_when_it_has_been_lived_then_much_had_happened(
    seed: int, lived: Lived
) -> None:
    outcome = lived(seed)

    assert outcome.operations >= OPERATIONS_MIN
    assert len(outcome.faults) >= FAULTS_MIN


def test_given_all_seeds_when_lived_then_every_rare_state_was_reached(lived: Lived) -> None:
    total = sum((lived(seed).sometimes for seed in SEEDS), Counter[str]())

    assert not never(total, len(SEEDS)), total


def test_given_one_seed_when_lived_again_then_its_history_is_the_same(
    lived: Lived, sim_processes: Processes
) -> None:
    (again,) = sim_processes.lives([SEEDS[-1]])

    assert again.digest == lived(SEEDS[-1]).digest
