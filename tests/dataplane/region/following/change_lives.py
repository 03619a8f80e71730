"""A copy whose log is cut among changes, in lives that end before any operation on its files."""

import copy as copying

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from dataplane.region.following.leading import lead
from dataplane.region.place import RegionLimits
from tests.dataplane.region.following.changing import (
    ITEMS,
    Moment,
    counted,
    moment,
    moments,
    state_on,
    work,
)
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.power_loss import DEVICES, Life, PowerLoss
from tests.dataplane.region.rig import REGION_ID, B, C, order, place

TINY = RegionLimits(memtable_bytes=20_000)


def promoted(copy: CopyRegion, epoch: int) -> Moment:
    copy.close()
    return counted(lead(place(copy.place.disk, copy.place.root), order(epoch)))


class CopyScene:
    """A copy of the first leader takes two records too many; the next leader has other ones."""

    def __init__(self) -> None:
        self.store, self.others = MemoryStore(), MemoryDisk(MemoryStore())
        old = leader(self.others)
        self.as_old = moments(old)
        self.first = [sent(old, 0, common, upto=4) for common in (0, 2)]
        other = copy_at(self.others, C)
        other.take(sent(old, 0, 0, upto=2))
        other.close()
        opening = lead(place(self.others, C), order(2))
        opening.count()
        self.new = opening.region
        self.as_new = self.as_old[:3]
        for item in range(3, ITEMS + 1):
            work(self.new, item)
            self.as_new.append(moment(self.new))
        self.second = [sent(self.new, 2, common, upto=common + 1) for common in range(2, ITEMS)]
        disk = MemoryDisk(self.store)
        disk.make_folder("/disk")
        copy_at(disk, limits=TINY).close()

    def batches(self) -> list[StreamedRecords]:
        return [*self.first, *self.second]

    def live(self, life: Life, told: list[int]) -> None:
        copy = CopyRegion(place(life.disk, B, limits=TINY), REGION_ID)
        for number, batch in enumerate(self.batches()):
            told.append(copy.take(batch))
            if number in (1, 5) and copy.maintenance is not None:
                copy.maintenance.flush()

    def check(self, store: MemoryStore, told: list[int]) -> None:
        """The copy that starts again has all that it has told, and comes to be as its leader."""
        disk = MemoryDisk(store)
        state = state_on(disk, B)
        common = max([0, *(b.common for b in self.batches()[: len(told) + 1])])
        known = [m.state for m in (*self.as_old[:3], *self.as_new[: common + 1])]
        assert state in known, "a change that is not common has no effect"
        again = CopyRegion(place(disk, B, limits=TINY), REGION_ID)
        was_cut = again.epoch == 2 and len(told) == len(self.first)
        assert again.durable.sequence >= (2 if was_cut else (told or [0])[-1])
        for _ in range(4):
            end = again.take(StreamedRecords(2, self.new.log_history, ITEMS, ()))
            again.take(sent(self.new, end, ITEMS))
        assert state_on(disk, B) == self.as_new[ITEMS].state
        assert promoted(again, 3) == self.as_new[ITEMS]

    def enumerate(self, device: str) -> int:
        cells = 0
        for end_at in range(1, 10_000):
            life, told = Life(store := copying.deepcopy(self.store), end_at), list[int]()
            try:
                self.live(life, told)
            except PowerLoss:
                store.crash(*DEVICES[device])
            else:
                self.check(store, told)
                break
            cells += 1
            self.check(store, told)
        return cells
