"""Routes name copies of which every one in a set has every acknowledged row, whatever happens."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from keys.model.tables import CopyRole, RegionRoute
from procedures.kinds.failover import change_copies, failover_plan
from procedures.kinds.failover.change_copies import ChangeCopies
from procedures.kinds.failover.failover_plan import DrainTarget, Rerouted
from procedures.ports import NodeView
from tests.sim.plots.copies.copied import CopiedWorld, LeaderView, lived

pytestmark = [pytest.mark.sim, pytest.mark.timeout(900)]

SEEDS = range(100)
PLANTED_SEEDS = range(200)
sound_with_role, sound_promoted = change_copies.with_role, failover_plan._promoted
Patch = tuple[Any, str, Any]


def test_given_drawn_lives_when_sets_change_and_leaders_move_then_sets_have_all_rows() -> None:
    counts = Counter[str]()
    for seed in SEEDS:
        world = lived(seed)
        counts.update(world.counts)
        counts["epochs"] += sum(region.epoch - 1 for region in world.route.region_routes)
        counts["versions"] += sum(r.copies_version - 1 for r in world.route.region_routes)
        assert world.wrong == [], f"seed {seed}"

    assert min(counts["acked"], counts["epochs"], counts["versions"]) >= len(SEEDS) // 2, counts


def learner_counted(
    region: RegionRoute, nodes: Sequence[NodeView], target: DrainTarget
) -> Rerouted | None:
    """A failover that takes a learner for a copy of the set."""
    every = tuple(copy.model_copy(update={"role": CopyRole.IN_SYNC}) for copy in region.copies)
    return sound_promoted(region.model_copy(update={"copies": every}), nodes, target)


def late_is_taken(region: RegionRoute, state: ChangeCopies, minimum: int) -> RegionRoute:
    """A change of the set that compares neither the epoch nor the version that its leader knew."""
    known = {"epoch": region.epoch, "version": region.copies_version}
    places = [(copy.node, copy.root) for copy in region.copies]
    if (state.node, state.root) not in places:
        return region
    return sound_with_role(region, state.model_copy(update=known), minimum)


def shrinks_alone(self: CopiedWorld, view: LeaderView, name: str) -> None:
    """A leader that requires a copy no more as soon as it has asked that it leaves."""
    view.members = view.members - {name}


def not_required(self: CopiedWorld, view: LeaderView, name: str) -> None:
    """A leader that requires a copy only once the route names it."""


PLANTED: dict[str, tuple[Patch, str]] = {
    "a learner counted": ((failover_plan, "_promoted", learner_counted), "of the set lacks"),
    "a change of the set that came late": (
        (change_copies, "with_role", late_is_taken),
        "of the set lacks",
    ),
    "a set that shrinks at the leader alone": (
        (CopiedWorld, "shrink", shrinks_alone),
        "of the set lacks",
    ),
    "a set that grows in the route first": (
        (CopiedWorld, "require", not_required),
        "of the set lacks",
    ),
}
"""Patches, and words of the check that finds the bug."""


@pytest.mark.parametrize("bug", PLANTED)
def test_given_a_planted_bug_when_lives_are_drawn_then_one_of_them_finds_it(
    bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, check = PLANTED[bug]
    monkeypatch.setattr(*patch)

    assert any(check in text for seed in PLANTED_SEEDS for text in lived(seed).wrong)
