"""A leader's log sent to copies by hand."""

from dataplane.region.disk.disk import Disk
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion, StreamedRecords
from dataplane.region.log.log_tail import LogTail
from dataplane.region.place import RegionLimits
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, Contents, contents, order, place

TINY = RegionLimits(memtable_bytes=2_000)


def leader(disk: Disk, root: str = A) -> Region:
    return Region.create(place(disk, root), SPEC, epoch=1)


def copy_at(disk: Disk, root: str = B, limits: RegionLimits | None = None) -> CopyRegion:
    return CopyRegion.create(place(disk, root, limits=limits), SPEC, epoch=1)


def sent(
    region: Region, after: int, common: int, bytes_max: int = 1 << 20, upto: int | None = None
) -> StreamedRecords:
    """The records behind *after* that a leader sends, with what it knows as common."""
    history = region.log_history
    end = history.end if upto is None else upto
    tail = LogTail(region.place.disk, region.place.root, REGION_ID)
    groups = tail.after(region.manifest, after, end, bytes_max)
    return StreamedRecords(region.opening.epoch, history, common, groups, region.unlogged_ms)


def promoted(copy: CopyRegion, epoch: int) -> Contents:
    """Everything that the copy has, once it is opened as the only copy of its region."""
    copy.close()
    return contents(Region.open(place(copy.place.disk, copy.place.root), order(epoch)))
