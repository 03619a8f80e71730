"""A copy on a full disk is sent records again and again, and leaves nothing there by its tries."""

import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from metasrv_base.errors import Unavailable
from tests.dataplane.region.following.stream import copy_at, leader, promoted, sent
from tests.dataplane.region.rig import B, write


def test_given_a_full_disk_when_records_come_again_and_again_then_no_file_is_left() -> None:
    is_full = False

    def refuse(operation: str, path: str) -> None:
        if is_full and operation == "append":
            raise Unavailable("storage-full", path=path)

    region, disk = leader(MemoryDisk(MemoryStore())), MemoryDisk(MemoryStore(), refuse)
    copy = copy_at(disk)
    for number in (1, 2):
        write(region, f"s-{number}", {b"a": (number, "x")})
    copy.take(sent(region, 0, common=0, upto=1))
    names = disk.list(B)

    is_full = True
    for _ in range(20):
        with pytest.raises(Unavailable) as refusal:
            copy.take(sent(region, 1, common=1))
        assert refusal.value.code == "storage-full"

    assert disk.list(B) == names
    is_full = False
    assert copy.take(sent(region, 1, common=1)) == 2
    assert promoted(copy, epoch=2) == {b"a": (2, "x")}
