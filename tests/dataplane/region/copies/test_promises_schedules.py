"""Promises in random schedules, with clocks that differ by 5 %: no stale read (G52)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pytest

from dataplane.region.copies.leader_view import CopyName
from dataplane.region.copies.promises import (
    PROMISE_MS,
    CopyHere,
    GivenPromises,
    PromiseRefusal,
)
from tests.dataplane.region.copies.promise_rules import Lead, PromiseRules
from tests.dataplane.region.copies.promise_world import lived

pytestmark = pytest.mark.slow

SEEDS = 300
PLANTED_SEEDS = 1_000


class WithoutDrift(GivenPromises):
    def give(self, region: int, leader: CopyName, now_ms: int) -> None:
        super().give(region, leader, now_ms - 100)


class Forgets(GivenPromises):
    """A copy that starts, and takes it that it has promised nothing."""

    def until_ms(self, region: int, following: Collection[CopyName] = ()) -> int:
        promised = self._until_ms.get(region, {})
        left = [until_ms for leader, until_ms in promised.items() if leader not in following]
        return max([self.started_ms, *left])


@dataclass(slots=True)
class OfTheFirst(GivenPromises):
    """A copy that keeps its first promise alone, and answers that it has renewed it."""

    def give(self, region: int, leader: CopyName, now_ms: int) -> None:
        if self.has_ended(region, now_ms):
            super(OfTheFirst, self).give(region, leader, now_ms)


class ToAnyLeader(GivenPromises):
    """A copy whose promises are all over once one of those that it was given to follows."""

    def until_ms(self, region: int, following: Collection[CopyName] = ()) -> int:
        promised = self._until_ms.get(region, {})
        ends = any(leader in following for leader in promised)
        return self.started_ms if ends else super().until_ms(region)


class EndsAtStart(GivenPromises):
    """A copy that starts, and takes the promise of before as given to whoever follows now."""

    def until_ms(self, region: int, following: Collection[CopyName] = ()) -> int:
        return 0 if following else super().until_ms(region)


def to_anybody(copy: CopyHere | None, root: str, _epoch: int) -> PromiseRefusal | None:
    return PromiseRefusal.NOT_HERE if copy is None or copy.root != root else None


def of_one(lead: Lead) -> frozenset[int]:
    return frozenset(sorted(lead.required)[-1:])


def anybody(_lead: Lead) -> frozenset[int]:
    return frozenset(range(4))


def of_members(lead: Lead) -> frozenset[int]:
    return lead.members


def alone(lead: Lead) -> bool:
    return len(lead.required) == 1


def known_alone(lead: Lead) -> bool:
    return len(lead.members) == 1


PLANTED: Mapping[str, PromiseRules] = {
    "a received promise that counts from its answer": PromiseRules(counts_answer=True),
    "a promoted copy that serves at once": PromiseRules(waits=False),
    "a copy that keeps a promise for 2 s by its own clock": PromiseRules(given=WithoutDrift),
    "a start that has promised nothing": PromiseRules(given=Forgets),
    "a promise that is not renewed at the copy": PromiseRules(given=OfTheFirst),
    "a promise to the leader of an old epoch": PromiseRules(refusal=to_anybody),
    "reads under one received promise": PromiseRules(needed=of_one),
    "reads without the promise of a copy that joins": PromiseRules(needed=of_members),
    "reads of a leader that is alone under the promise of who joins it": PromiseRules(
        shrinks_to_one=True, leased=alone
    ),
    "reads of a leader that has asked to be alone": PromiseRules(
        shrinks_to_one=True, leased=known_alone
    ),
    "a last copy that is removed behind the back of its leader": PromiseRules(
        shrinks_to_one=True, is_told=False
    ),
    "a takeover from a promoted copy that has not opened": PromiseRules(
        shrinks_to_one=True, borrows_served=False
    ),
    "a set that grows while the new leader's promise lasts": PromiseRules(grows_after=False),
    "a promise to one former leader that ends with that to another": PromiseRules(
        given=ToAnyLeader
    ),
    "a promise of before the start that ends when a copy follows": PromiseRules(given=EndsAtStart),
    "a former leader that is taken to follow": PromiseRules(gave_up=anybody),
    "a promise under a clock that stands while suspended": PromiseRules(counts_suspended=False),
}


def test_given_random_schedules_when_leaders_read_under_promises_then_no_read_is_stale() -> None:
    reads, promotions, takeovers = 0, 0, 0
    for seed in range(SEEDS):
        world = lived(seed, PromiseRules(shrinks_to_one=seed % 2 == 1))
        assert not world.stale, seed
        reads += world.reads
        promotions += world.promotions
        takeovers += world.takeovers

    assert reads > 4 * SEEDS, "or nothing of it was tried"
    assert promotions > 4 * SEEDS
    assert takeovers > SEEDS
    assert PROMISE_MS == 2_000, "the planted bugs are of this length"


@pytest.mark.parametrize("name", PLANTED)
def test_given_a_planted_bug_of_promises_when_schedules_are_drawn_then_a_read_is_stale(
    name: str,
) -> None:
    rules = PLANTED[name]

    assert any(lived(seed, rules).stale for seed in range(PLANTED_SEEDS)), name
