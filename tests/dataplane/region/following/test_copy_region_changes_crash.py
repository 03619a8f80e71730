"""A node dies among changes: each of them is whole, or was answered to nobody."""

import copy as copying

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.leading import lead
from tests.dataplane.region.following.change_lives import TINY, CopyScene
from tests.dataplane.region.following.changing import ITEMS, moment, moments, work
from tests.dataplane.region.following.stream import copy_at
from tests.dataplane.region.power_loss import FAST, Life, cut_short
from tests.dataplane.region.rig import B, order, place

pytestmark = pytest.mark.slow
SOME = ("loses all", FAST)
"""The other devices fail only below what changes add: in segments and manifests."""


@pytest.mark.parametrize("device", SOME)
def test_given_a_copy_that_dies_anywhere_among_changes_then_it_comes_to_be_as_its_leader(
    device: str,
) -> None:
    assert CopyScene().enumerate(device) > 40


class LeaderLife:
    """A leader that orders rows and changes; *answered* and *ordered* as items."""

    def __init__(self) -> None:
        self.answered = self.ordered = 0

    def live(self, life: Life) -> None:
        opening = lead(place(life.disk, B, limits=TINY), order(2))
        opening.count()
        for item in range(1, ITEMS + 1):
            self.ordered = item
            work(opening.region, item)
            self.answered = item
            if item in (4, 8):
                opening.region.maintenance.flush()


@pytest.mark.parametrize(("device", "alone"), [(SOME[0], False), (SOME[1], True)])
def test_given_a_leader_that_dies_anywhere_then_each_change_is_whole_or_was_not_answered(
    device: str, *, alone: bool
) -> None:
    store = MemoryStore()
    disk = MemoryDisk(store)
    disk.make_folder("/disk")
    copy_at(disk, limits=TINY).close()
    lives: list[LeaderLife] = []

    def live(life: Life) -> None:
        lives.append(LeaderLife())
        lives[-1].live(life)

    whole = LeaderLife()
    expected = copying.deepcopy(store)
    opening = lead(place(MemoryDisk(expected), B), order(2))
    opening.count()
    as_led = moments(opening.region)
    cells = 0
    for _, left in cut_short(store, device, live):
        whole, cells = lives[-1], cells + 1
        again = open_again(left, alone=alone)
        end = again.log_history.end
        assert whole.answered <= end <= whole.ordered
        found = moment(again)
        assert (found.state, found.rows) == (as_led[end].state, as_led[end].rows)
    assert cells > 40


def open_again(store: MemoryStore, *, alone: bool) -> Region:
    disk = MemoryDisk(store)
    if alone:
        return Region.open(place(disk, B), order(3))
    opening = lead(place(disk, B), order(3))
    opening.count()
    return opening.region
