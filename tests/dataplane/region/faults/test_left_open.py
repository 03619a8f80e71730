"""Any operation fails, of a region, a copy or a journal; none of their files stays open."""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from itertools import count

import pytest

from dataplane.datanode.orders.journal import open_journal
from dataplane.datanode.orders.journal_format import Dropped
from dataplane.region.disk.memory_disk import Hook, Inode, MemoryDisk, MemoryFile, MemoryStore
from dataplane.region.engine.region import Region
from dataplane.region.following.copy_region import CopyRegion
from metasrv_base.errors import MetaError, Unavailable, Unknown
from tests.dataplane.region.following.stream import copy_at, leader, sent
from tests.dataplane.region.rig import REGION_ID, SPEC, A, B, order, place, write

CHANGES = {"create", "append", "sync", "sync_file", "sync_folder", "rename", "remove"}


class CountedFile(MemoryFile):
    """A file whose path is among those that are open, until it is closed."""

    def __init__(self, inode: Inode, path: str, hook: Hook, among: list[str]) -> None:
        super().__init__(inode, path, hook)
        self._among = among
        among.append(path)

    def close(self) -> None:
        if self._path in self._among:
            self._among.remove(self._path)


class FailingDisk(MemoryDisk):
    """Fails one change, the *fails_at*-th, as a full disk or as one that cannot sync."""

    def __init__(self, fails_at: int) -> None:
        super().__init__(MemoryStore(), self._fail)
        self.open_paths: list[str] = []
        self.changes = 0
        self._fails_at = fails_at
        MemoryDisk(self.store).make_folder("/disk")

    def create(self, path: str) -> MemoryFile:
        super().create(path)
        return CountedFile(self.store.inode(path), path, self._fail, self.open_paths)

    def _fail(self, operation: str, path: str) -> None:
        self.changes += operation in CHANGES
        if operation in CHANGES and self.changes == self._fails_at:
            if operation in ("create", "append"):
                raise Unavailable("storage-full", path=path)
            raise Unknown("outcome-unknown", path=path, errno="EIO")


async def serve_a_region(disk: FailingDisk) -> None:
    """Makes it, opens it again, writes, flushes."""
    with suppress(MetaError):
        Region.create(place(disk), SPEC, 1).close()
    for number in range(3):
        with suppress(MetaError), ExitStack() as closed:
            region = Region.open(place(disk), order(1))
            closed.callback(region.close)
            for part in range(2):
                write(region, f"s-{number}-{part}", {b"%d" % number: (part, "x")})
            region.maintenance.flush()


async def follow_a_leader(disk: FailingDisk) -> None:
    """Makes a copy that takes records, and flushes; then one that starts again, and one in its
    place."""
    leading = leader(MemoryDisk(MemoryStore()))
    for number in range(4):
        write(leading, f"s-{number}", {b"%d" % number: (number, "x")})
    with suppress(MetaError):
        copy_at(disk, A)
    for end in (2, 4):
        with suppress(MetaError), ExitStack() as closed:
            copy = CopyRegion(place(disk), REGION_ID)
            closed.callback(copy.close)
            copy.take(sent(leading, 0, common=end, upto=end))
            assert copy.maintenance is not None
            copy.maintenance.flush()
    with suppress(MetaError):
        CopyRegion.create(place(disk, B), SPEC, 2, [A])


async def keep_a_journal(disk: FailingDisk) -> None:
    with suppress(MetaError), ExitStack() as closed:
        journal = open_journal(disk, "/disk", "dn-1")
        closed.callback(journal.close)
        for number in range(4):
            with suppress(MetaError):
                await journal.commit([Dropped(region_id=str(REGION_ID + number))])


@pytest.mark.parametrize("life", [serve_a_region, follow_a_leader, keep_a_journal])
async def test_given_any_change_of_a_disk_that_fails_then_no_file_stays_open(
    life: Callable[[FailingDisk], Awaitable[None]],
) -> None:
    left = dict[int, list[str]]()
    for fails_at in count(1):
        disk = FailingDisk(fails_at)
        await life(disk)
        if disk.open_paths:
            left[fails_at] = disk.open_paths
        if disk.changes < fails_at:
            break

    assert left == {}
    assert fails_at > 15
