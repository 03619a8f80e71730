"""Planted mistakes that a simulation finds within a few seeds; the slow ones are for `make sim`:

make sim SEEDS=50 ARGS="--bug 'no wait after an election'"
"""

import pytest

from tests.sim.lives import hunts

pytestmark = [pytest.mark.sim, pytest.mark.timeout(600)]

SEEDS_MAX = 4
QUICK = {
    "no fence": "fence",
    "reverse index forgotten": "catalog",
    "drain skipped": "two versions",
    "regions not told": "floor",
    "delete-only skipped": "catalog",
    "pins not told": "two versions",
    "pins not looked at": "two versions",
    "only pins looked at": "two versions",
    "old entries stay": "which it is not",
    "no new entries": "lacks",
    "origin default forgotten": "right: one of",
    "reorg skipped": "lacks",
}
"""Which check finds it."""


def test_given_planted_mistakes_when_seeds_are_lived_then_each_is_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = dict(zip(QUICK, hunts(list(QUICK.items()), SEEDS_MAX), strict=True))

    assert None not in found.values(), found
    with capsys.disabled():
        for name, seeds in found.items():
            print(f"\n{name}: seed {seeds}, by {QUICK[name]!r}", end="")
