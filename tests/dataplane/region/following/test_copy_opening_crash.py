"""A copy that dies while it follows, cuts, appends or flushes loses nothing that counts."""

import copy as copying
from contextlib import suppress
from itertools import count

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from metasrv_base.errors import MetaError
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.power_loss import DEVICES, FailingSync, Life, PowerLoss
from tests.dataplane.region.rig import REGION_ID, B, C, contents, order, place, write

pytestmark = pytest.mark.slow


class Scene:
    """Three records at copy B, of which one is common, and one at copy C, which leads now."""

    def __init__(self) -> None:
        self.leaders = MemoryDisk(MemoryStore())
        self.store = MemoryStore()
        old = leader(self.leaders)
        for number in range(3):
            write(old, f"s-{number}", {f"k{number}".encode(): (number, "old")})
        disk = MemoryDisk(self.store)
        disk.make_folder("/disk")
        behind = copy_at(disk)
        behind.take(sent(old, 0, common=1))
        behind.close()
        other = copy_at(self.leaders, C)
        other.take(sent(old, 0, common=1, upto=1))
        other.close()
        self.new = Region.open(place(self.leaders, C), order(2))
        for number in range(4, 12):
            write(self.new, f"s-{number}", {f"k{number}".encode(): (number, "new" * 40)})
        self.batches = [sent(self.new, 0, common=1, upto=3), sent(self.new, 3, common=6, upto=6)]
        self.batches.append(sent(self.new, 6, common=7))

    def live(self, life: Life, told: list[int]) -> None:
        following = CopyRegion(place(life.disk, B), REGION_ID)
        for batch in self.batches:
            told.append(following.take(batch))
            if following.maintenance is not None:
                following.maintenance.flush()


@pytest.mark.parametrize("device", DEVICES)
def test_given_a_copy_that_dies_anywhere_when_it_starts_again_then_it_has_what_it_told(
    device: str,
) -> None:
    scene, cells = Scene(), 0
    for end_at in count(1):
        life, told = Life(store := copying.deepcopy(scene.store), end_at), list[int]()
        try:
            scene.live(life, told)
        except PowerLoss:
            store.crash(*DEVICES[device])
        else:
            break
        cells += 1
        again = CopyRegion(place(MemoryDisk(store), B), REGION_ID)
        assert again.durable.sequence >= max(told, default=1)
        if told:
            assert again.epoch == 2, "an acknowledged record is of the epoch that it followed"
        for batch in scene.batches:
            again.take(batch)
        rest = StreamedRecords(2, scene.new.log_history, 9, ())
        assert again.take(rest) == 9
        assert promoted(again, 3) == contents(scene.new)

    assert cells > 40


@pytest.mark.parametrize("device", DEVICES)
def test_given_a_copy_whose_sync_fails_anywhere_when_the_power_fails_then_it_has_what_it_told(
    device: str,
) -> None:
    scene = Scene()
    for fails_at in count(1):
        failing = FailingSync(store := copying.deepcopy(scene.store), fails_at)
        told = list[int]()
        for _ in range(2):  # the process starts again, and is sent all again
            with suppress(MetaError):
                following = CopyRegion(place(failing.disk, B), REGION_ID)
                for batch in scene.batches:
                    told.append(following.take(batch))
                    if following.maintenance is not None:
                        following.maintenance.flush()
        store.crash(*DEVICES[device])
        again = CopyRegion(place(MemoryDisk(store), B), REGION_ID)
        assert again.durable.sequence == max(told) == 9
        assert promoted(again, 3) == contents(scene.new)
        if failing.syncs < fails_at:
            break

    assert fails_at > 10


@pytest.mark.parametrize("device", DEVICES)
def test_given_a_copy_that_dies_while_it_cuts_when_promoted_then_it_has_all_that_is_common(
    device: str,
) -> None:
    """By an order that comes before it has followed anybody again: its old tail is not in doubt,
    since it was cut or was not."""
    scene = Scene()
    kept = {b"k0": (0, "old")}
    tail = {b"k1": (1, "old"), b"k2": (2, "old")}
    for end_at in count(1):
        life, told = Life(store := copying.deepcopy(scene.store), end_at), list[int]()
        with suppress(PowerLoss):
            scene.live(life, told)
        if life.operations < end_at:
            return
        store.crash(*DEVICES[device])
        region = Region.open(place(MemoryDisk(store), B), order(3))
        rows = contents(region)
        assert kept.items() <= rows.items()
        assert rows.keys() >= {f"k{n + 2}".encode() for n in range(2, max(told, default=0) + 1)}
        is_uncut = tail.items() <= rows.items()
        assert is_uncut or not tail.keys() & rows.keys()
        assert not (is_uncut and told), "a cut comes before the first acknowledgement"
