"""Statements under any clocks, copies, crashes and takeovers: never twice, and never refused early.

Senders and nodes have clocks that differ, by no more than is allowed, or (wild) by anything, with
leaps both ways. A statement is sent any number of times, with the time at which it was made.
"""

import pytest

from tests.dataplane.region.statement_lives import SEEDS, live
from tests.drawn import new_seed


def seeds() -> list[int]:
    drawn = new_seed()
    return [*range(SEEDS), *([] if drawn is None else [drawn])]


@pytest.mark.slow
@pytest.mark.parametrize("is_wild", [False, True], ids=["within the allowance", "wild"])
def test_given_any_clocks_when_copies_come_then_none_is_applied_twice_or_refused_early(
    is_wild: bool,
) -> None:
    worlds = [live(seed, is_wild=is_wild) for seed in seeds()]

    assert sum(len(world.applied) for world in worlds) > 100
