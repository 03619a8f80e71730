"""Statements that are sent twice to a region with copies (docs/decisions/0388)."""

import pytest

from tests.dataplane.region.following.copied_statement_lives import SEEDS, live_copied


@pytest.mark.parametrize("is_wild", [False, True])
def test_given_copies_that_lead_and_begin_anew_then_no_statement_is_applied_twice(
    *, is_wild: bool
) -> None:
    worlds = [live_copied(seed, is_wild=is_wild) for seed in range(SEEDS)]

    assert sum(world.promoted for world in worlds) > SEEDS
    assert sum(world.emptied for world in worlds) > SEEDS
    assert sum(world.refused for world in worlds) > SEEDS
