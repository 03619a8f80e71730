"""Planted mistakes that a simulation finds within a few seeds; the slow ones are for `make sim`:

make sim SEEDS=50 ARGS="--bug 'no wait after an election'"
"""

import pytest

from tests.sim.planted import BUGS
from tests.sim.plot import live

pytestmark = pytest.mark.sim

SEEDS_MAX = 4
QUICK = {
    "no fence": "fence",
    "reverse index forgotten": "catalog",
}
"""Which check finds it."""


@pytest.mark.parametrize("name", QUICK)
def test_given_a_planted_mistake_when_seeds_are_lived_then_it_is_found(name: str) -> None:
    for seed in range(1, SEEDS_MAX + 1):
        found = live(seed, BUGS[name]).violations
        if any(QUICK[name] in text for text in found):
            return

    pytest.fail(f"{name}: not found in {SEEDS_MAX} seeds")
