"""Planted mistakes that a simulation finds within a few short lives. The slow ones: `make sim`.

make sim SEEDS=50 ARGS="--bug 'no wait after an election'"
"""

import pytest

from tests.sim.clients.logs import SHORT_LOG
from tests.sim.clients.queues import SHORT_QUEUE
from tests.sim.cluster.outage import OUTAGE
from tests.sim.length import FIRST_SHORT, SHORT, Life
from tests.sim.plots.copies.replicated import REPLICATED
from tests.sim.plots.large_batches import LARGE_BATCHES
from tests.sim.plots.placed import PLACED
from tests.sim.plots.reshaped.reshaped_copies import RESHAPED_COPIES
from tests.sim.runs import Hunt, Processes

pytestmark = [pytest.mark.sim, pytest.mark.timeout(2_400)]

LIVES_MAX = 30
QUICK = [
    Hunt("no fence", "fence"),
    Hunt("reverse index forgotten", "catalog"),
    Hunt("drain skipped", "two versions"),
    Hunt("regions not told", "floor"),
    Hunt("publish before orders", "floor"),
    Hunt("delete-only skipped", "catalog"),
    Hunt("pins not told", "two versions"),
    Hunt("pins not looked at", "two versions"),
    Hunt("only pins looked at", "two versions"),
    Hunt("pin let go in flight", "two versions"),
    Hunt("schema lease without end", "goes on without one"),
    Hunt("old entries stay", "which it is not"),
    Hunt("no new entries", "lacks"),
    Hunt("origin default forgotten", "right: one of"),
    Hunt("reorg skipped", "lacks"),
    Hunt("a lost page is left out", "stood there"),
    Hunt("a control told before it is stored", "was paused, and is", first=215),
    Hunt("a new leader is waited for", "led by who lives", OUTAGE, first=1),
    Hunt("one page of records recovered", "not taken up", SHORT_QUEUE, first=1),
    Hunt("a replay that ends at a bound", "right: one of", SHORT_LOG, first=1),
    Hunt("a failover ignores the node filter", "filter: ", PLACED, first=2),
    Hunt("acknowledged before a copy has it", "right: one of", REPLICATED, first=4),
    Hunt("a learner counted for min_in_sync", "below the minimum", REPLICATED, first=8),
    Hunt("a set that shrinks at the leader alone", "right: one of", REPLICATED, first=2),
    Hunt("a copy forgets the age of its rows", "rows of up to", RESHAPED_COPIES, first=42),
    Hunt("keys of a large version are left", "keys of the one before", LARGE_BATCHES, first=2),
]
SPIED = [*(Life(FIRST_SHORT + n, SHORT) for n in range(4)), Life(1, OUTAGE), Life(1), Life(2)]
SPIED.append(Life(2, REPLICATED))
"""A merge of files comes in long lives alone."""


def test_given_sound_lives_then_the_code_comes_to_the_seam_of_each_mistake(
    sim_processes: Processes,
) -> None:
    assert sim_processes.never_reached(SPIED) == frozenset()


def test_given_planted_mistakes_when_seeds_are_lived_then_each_is_found(
    sim_processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    found = dict(zip(QUICK, sim_processes.hunts(QUICK, LIVES_MAX), strict=True))

    with capsys.disabled():
        for hunt, hunted in found.items():
            said = f"after {hunted.lives} lives" if hunted.is_found else "NOT FOUND"
            print(f"\n{hunt.bug}: {hunt.length.name}, {hunt.check!r} {said}", end="")
            print(f", {hunted.cpu_s:.0f} s", end="")
        print(f"\n{sum(hunted.cpu_s for hunted in found.values()):.0f} s of processor time", end="")
    assert {hunt.bug: one for hunt, one in found.items() if not one.is_found or one.missed} == {}
