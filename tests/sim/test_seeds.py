"""The system under seeds: every one a cluster, its clients and its faults, in virtual time.

Ten long lives, 290 short ones (with LIVES=110 in the environment so many of both), ten in which
several nodes die, one with a long queue of procedures, and one with a long log. More of them:
`make sim SEEDS=10000`, with `ARGS=--short`, or `ARGS="--length outage"` (`queue`, `long-queue`,
`log`); one of them again: `make sim SEEDS=1 FIRST=17`.
"""

import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.drawn import new_seed
from tests.sim.clients.logs import LOG
from tests.sim.clients.queues import QUEUE
from tests.sim.cluster.outage import OUTAGE
from tests.sim.corpus import FOUND
from tests.sim.length import FIRST_SHORT, LONG, SHORT, Length, Life
from tests.sim.report import REACHED, never, shown
from tests.sim.runs import Processes
from tests.sim.scenario import Outcome

pytestmark = [pytest.mark.sim, pytest.mark.timeout(2_400)]

LONG_LIVES = 10
OUTAGES = 10
NEW_SHORT = 4
NEW_FROM = 1_000_000
"""Above every seed that has a name."""
SHORT_LIVES = int(os.environ.get("LIVES", "300")) - LONG_LIVES


def drawn(seed: int) -> list[Life]:
    """One long life, a few short ones and an outage of a seed that this run has drawn
    (tests/drawn.py); a failure names the command that lives it again."""
    first = NEW_FROM + seed
    short = (Life(first + n, SHORT) for n in range(1, 1 + NEW_SHORT))
    return [Life(first, LONG), *short, Life(first, OUTAGE)]


LIVES = [
    *(Life(seed, LONG) for seed in range(1, 1 + LONG_LIVES)),
    *(Life(seed, SHORT) for seed in range(FIRST_SHORT, FIRST_SHORT + SHORT_LIVES)),
    *(Life(seed, OUTAGE) for seed in range(1, 1 + OUTAGES)),
    Life(1, QUEUE),
    Life(1, LOG),
]
NEW = [] if (seed := new_seed()) is None else drawn(seed)
EVERY = list(dict.fromkeys([*LIVES, *FOUND, *NEW]))

OPERATIONS_MIN = {LONG: 200, SHORT: 34, OUTAGE: 34, QUEUE: 1_000, LOG: 10_000}
Lived = Callable[[Life], Outcome]


@pytest.fixture(scope="module")
def lived(sim_processes: Processes) -> Lived:
    """The results of the lives; each was lived once."""
    return dict(zip(EVERY, sim_processes.lives(EVERY), strict=True)).__getitem__


@pytest.mark.case("online 76")
@pytest.mark.parametrize("life", EVERY, ids=str)
def test_given_a_seed_when_it_has_been_lived_then_nothing_was_wrong(
    life: Life, lived: Lived
) -> None:
    outcome = lived(life)

    assert not outcome.violations, shown(outcome)


@pytest.mark.parametrize("life", LIVES, ids=str)
def test_given_a_seed_when_it_has_been_lived_then_much_had_happened(
    life: Life, lived: Lived
) -> None:
    outcome = lived(life)

    assert outcome.operations >= OPERATIONS_MIN[life.length]
    assert outcome.changes >= life.length.changes
    assert len(outcome.faults) >= life.length.faults_min


def test_given_all_seeds_when_lived_then_every_rare_state_was_reached(lived: Lived) -> None:
    outcomes = [lived(life) for life in LIVES]
    total = sum((outcome.sometimes for outcome in outcomes), Counter[str]())

    assert not never(total, sum(outcome.operations for outcome in outcomes)), total


def test_given_all_seeds_when_lived_then_what_needs_much_was_reached_often(
    lived: Lived, capsys: pytest.CaptureFixture[str]
) -> None:
    total = sum((lived(life).sometimes for life in LIVES), Counter[str]())

    with capsys.disabled():
        for what, least in REACHED.items():
            print(f"\n{total[what]} (at least {least}): {what}", end="")
    assert not [what for what, least in REACHED.items() if total[what] < least]


@pytest.mark.parametrize("length", [LONG, SHORT, OUTAGE], ids=lambda length: length.name)
def test_given_one_seed_when_lived_again_then_its_history_is_the_same(
    length: Length, lived: Lived, sim_processes: Processes
) -> None:
    life = next(one for one in LIVES if one.length is length)

    (again,) = sim_processes.lives([life])

    assert again.digest == lived(life).digest
