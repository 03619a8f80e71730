"""A copy whose log is cut among ingests, in lives that end before any operation on its files."""

import copy as copying
import posixpath
import zlib
from collections.abc import Iterator

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from dataplane.region.following.leading import lead
from dataplane.region.place import RegionLimits
from tests.dataplane.region.fetching.ingesting import (
    ITEMS,
    TAKES_ENTRIES,
    Moment,
    fetch_lacked,
    moment,
    work,
)
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.power_loss import DEVICES, Life, PowerLoss
from tests.dataplane.region.rig import REGION_ID, B, C, order, place

TINY = RegionLimits(memtable_bytes=20_000)
CUT = 2
"""The last record that the next leader has of the first."""


def worked(region: Region, first: int) -> list[Moment]:
    """Works through the items from *first* on; what the region is after each."""
    moments = []
    for item in range(first, ITEMS + 1):
        work(region, item)
        assert region.log_history.end == item
        moments.append(moment(region))
    return moments


def promoted(store: MemoryStore, epoch: int) -> tuple[int, Moment]:
    """The end of the log of a copy, and what it is once it leads, after it was tidied."""
    opening = lead(place(MemoryDisk(store), B, limits=TINY), order(epoch))
    opening.region.maintenance.collect()
    opening.count()
    opening.region.maintenance.collect()
    for entry in opening.region.manifest.files:
        data = opening.region.place.disk.read(posixpath.join(B, entry.name), 0, 1 << 20)
        assert f"{zlib.crc32(data):08x}" == entry.crc32, "every byte is that of its leader"
    return opening.log.end, moment(opening.region)


class IngestScene:
    """A copy takes an ingest of the first leader too many; the next leader makes another one."""

    def __init__(self) -> None:
        self.store, others = MemoryStore(), MemoryDisk(MemoryStore())
        self.old = leader(others)
        self.as_old = [moment(self.old), *worked(self.old, 1)]
        other = copy_at(others, C)
        other.take(sent(self.old, 0, 0, upto=CUT))
        other.close()
        opening = lead(place(others, C), order(2))
        opening.count()
        self.new = opening.region
        self.as_new = [*self.as_old[: CUT + 1], *worked(self.new, CUT + 1)]
        self.first = [sent(self.old, 0, common, upto=TAKES_ENTRIES) for common in (0, CUT)]
        self.second = [sent(self.new, CUT, end, upto=end) for end in (3, 5, 7, 9, ITEMS)]
        disk = MemoryDisk(self.store)
        disk.make_folder("/disk")
        copy_at(disk, limits=TINY).close()

    def batches(self) -> Iterator[tuple[Region, StreamedRecords]]:
        """Each is sent until the copy has all of it."""
        yield from ((self.old, records) for records in self.first)
        yield from ((self.new, records) for records in self.second)

    def live(self, life: Life, told: list[int]) -> None:
        copy = CopyRegion(place(life.disk, B, limits=TINY), REGION_ID)
        for number, (region, records) in enumerate(self.batches()):
            told.append(self.until_taken(copy, region, records))
            if copy.maintenance is not None:
                copy.maintenance.collect()
                if number in (3, 5):
                    copy.maintenance.flush()

    def until_taken(self, copy: CopyRegion, region: Region, records: StreamedRecords) -> int:
        end = records.groups[-1].position.sequence
        for _ in range(10):
            taken = copy.take(records)
            assert copy.maintenance is not None
            copy.maintenance.collect()
            if copy.lacks is not None:
                fetch_lacked(region, copy)
            elif taken == end:
                return taken
        raise AssertionError("it does not catch up")

    def check(self, store: MemoryStore, told: list[int]) -> None:
        """A copy that is promoted has all that it has told, with the rows of files; one that starts
        again comes to be as its leader."""
        log_end, found = promoted(copying.deepcopy(store), 3)
        least = self.least(told)
        assert log_end >= least, f"{log_end} of {least} records are left"
        assert found in (self.as_old[log_end], self.as_new[log_end])
        again = CopyRegion(place(MemoryDisk(store), B, limits=TINY), REGION_ID)
        for number in range(3):
            records = sent(self.new, min(CUT, again.durable.sequence), ITEMS)
            if number:
                records = sent(self.new, again.durable.sequence, ITEMS)
            again.take(records)
            while again.lacks is not None:
                fetch_lacked(self.new, again)
                again.take(sent(self.new, again.durable.sequence, ITEMS))
        again.close()
        assert promoted(store, 3) == (ITEMS, self.as_new[ITEMS])

    def least(self, told: list[int]) -> int:
        """The records that are left at least. The first of the second leader may have cut some."""
        if len(told) == len(self.first):
            return CUT
        return (told or [0])[-1]

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
