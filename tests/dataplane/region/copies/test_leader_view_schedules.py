"""Leaders and copies in random schedules: the rules keep G51 to G55, and each is needed."""

import pytest

from tests.dataplane.region.copies.planted import PLANTED
from tests.dataplane.region.copies.world import Rules, World, live

pytestmark = pytest.mark.slow

SEEDS = 240
PLANTED_SEEDS = 5_000  # most are found within 50


def lived(seed: int, rules: Rules) -> tuple[World, str | None]:
    return live(seed, rules, steps=300, nodes=2 + seed % 3, min_in_sync=1 + seed % 2)


def test_given_random_schedules_when_copies_follow_leaders_then_no_guarantee_is_broken() -> None:
    acknowledged, epochs, quiet = 0, 0, 0
    for seed in range(SEEDS):
        world, fault = lived(seed, Rules())
        assert fault is None, (seed, fault, world.trace)
        acknowledged += len(world.acked)
        epochs += world.route.epoch
        if world.settle():
            quiet += 1
            assert next(world.faults(), None) is None, seed
            logs = {tuple(world.nodes[copy].log) for copy in world.route.in_sync}
            assert len(logs) == 1, (seed, "all is quiet, and two copies differ")

    assert acknowledged > 4 * SEEDS, "or nothing of it was tried"
    assert epochs > 4 * SEEDS
    assert quiet > SEEDS // 2


@pytest.mark.parametrize("name", PLANTED)
def test_given_a_rule_removed_when_schedules_are_drawn_then_its_fault_is_found(name: str) -> None:
    rules, fault = PLANTED[name]

    assert any(lived(seed, rules)[1] == fault for seed in range(PLANTED_SEEDS)), name
