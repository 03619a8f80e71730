"""A real file system that takes no more, in the middle of a write; and a sync that fails once.

The kernel's limit on the size of a file stands for a full disk: it, too, takes a part of a write.
"""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dataplane.region.disk import local_disk
from dataplane.region.disk.local_disk import LocalDisk, LocalFile
from dataplane.region.engine.region import Region
from dataplane.region.format.schema import RegionSchema
from metasrv_base.errors import Conflict, Unavailable, Unknown
from tests.dataplane.region.rig import SPEC, contents, order, place, write


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_given_room_for_a_part_when_appended_then_nothing_of_it_stays_and_it_says_what_is_left(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "file")
    file = LocalDisk().create(path)
    file.append(b"a" * 1_000)

    with files_no_larger_than(1_500), pytest.raises(Unavailable) as refusal:
        file.append(b"b" * 1_000)

    assert refusal.value.code == "storage-full"
    assert refusal.value.facts["limit"] == "EFBIG"
    assert os.path.ismount(str(refusal.value.facts["disk"]))
    assert refusal.value.facts["free_bytes"] == pytest.approx(
        os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize, rel=0.5
    )
    assert Path(path).read_bytes() == b"a" * 1_000
    file.append(b"c" * 1_000)
    file.sync()
    assert Path(path).read_bytes() == b"a" * 1_000 + b"c" * 1_000


def test_given_a_full_disk_in_the_middle_of_a_group_when_there_is_room_then_the_region_goes_on(
    tmp_path: Path,
) -> None:
    where = place(LocalDisk(), str(tmp_path / "region"))
    region = Region.create(where, SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x" * 5_000)})

    with files_no_larger_than(8_000):
        for _ in range(3):
            with pytest.raises(Unavailable) as refusal:
                write(region, "s-2", {b"b": (2, "y" * 5_000)})
            assert refusal.value.code == "storage-full"
        assert contents(region) == {b"a": (1, "x" * 5_000)}
        assert contents(Region.open(where, order(1))) == contents(region)

    region = Region.open(where, order(1))
    write(region, "s-2", {b"b": (2, "y" * 5_000)})
    assert contents(Region.open(where, order(1))) == contents(region)
    assert len(contents(region)) == 2


def test_given_a_full_disk_when_the_schema_changes_again_and_again_then_no_room_is_taken(
    tmp_path: Path,
) -> None:
    where = place(LocalDisk(), str(tmp_path / "region"))
    region = Region.create(where, SPEC, epoch=1)
    names = where.disk.list(where.root)

    with files_no_larger_than(300):
        for version in range(2, 5):
            with pytest.raises(Unavailable) as refusal:
                region.set_schema(RegionSchema(version=version))
            assert refusal.value.code == "storage-full"

    assert where.disk.list(where.root) == names
    region.set_schema(RegionSchema(version=5))


def test_given_room_for_a_part_when_copied_then_nothing_of_it_stays(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"a" * 5_000)

    with files_no_larger_than(3_000), pytest.raises(Unavailable) as refusal:
        LocalDisk().copy(str(source), str(target))

    assert refusal.value.code == "storage-full"
    assert os.listdir(tmp_path) == ["source"]
    LocalDisk().copy(str(source), str(target))
    with files_no_larger_than(3_000), pytest.raises(Conflict):
        LocalDisk().copy(str(source), str(target))
    assert target.read_bytes() == source.read_bytes(), "another's file stays"


def test_given_a_copy_whose_sync_fails_then_nothing_of_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = CachingOs()
    monkeypatch.setattr(local_disk, "os", kernel)
    source = tmp_path / "source"
    source.write_bytes(b"a" * 5_000)
    kernel.fails = True

    with pytest.raises(Unknown):
        LocalDisk().copy(str(source), str(tmp_path / "target"))

    assert os.listdir(tmp_path) == ["source"]


@pytest.mark.parametrize("act", ["create", "append"])
def test_given_a_full_disk_that_cannot_say_what_is_left_then_it_is_full_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    file, kernel = LocalDisk().create(str(tmp_path / "file")), SilentOs()
    acts: dict[str, Callable[[], object]] = {
        "create": lambda: LocalDisk().create(str(tmp_path / "other")),
        "append": lambda: file.append(b"a"),
    }
    monkeypatch.setattr(local_disk, "os", kernel)

    with pytest.raises(Unavailable) as refusal:
        acts[act]()

    assert refusal.value.code == "storage-full"
    assert "free_bytes" not in refusal.value.facts
    assert refusal.value.facts["limit"] == "ENOSPC"


class SilentOs:
    """The module `os` of a full disk whose figures cannot be read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, *_: object) -> int:
        raise OSError(errno.ENOSPC, "full", path)

    def write(self, _: int, __: memoryview) -> int:
        raise OSError(errno.ENOSPC, "full")

    def statvfs(self, path: str) -> os.statvfs_result:
        raise OSError(errno.EIO, "not read", path)


class ForgetfulKernel(LocalFile):
    """Reports a failed sync once, as Linux does: the next one succeeds for nothing."""

    fails = False

    def sync(self) -> None:
        if self.fails:
            closed = os.open("/dev/null", os.O_RDONLY)
            os.close(closed)
            real, self._descriptor = self._descriptor, closed
            try:
                super().sync()
            finally:
                self._descriptor, self.fails = real, False
        super().sync()


def test_given_a_sync_that_failed_when_tried_again_then_it_is_not_believed(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    file = ForgetfulKernel(path, os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND))
    file.append(b"a")
    file.fails = True

    with pytest.raises(Unknown):
        file.sync()

    with pytest.raises(Unknown):
        file.sync()
    with pytest.raises(Unknown):
        file.append(b"b")
    assert Path(path).read_bytes() == b"a"
    file.close()


class CachingOs:
    """The module `os` of a kernel that keeps bytes in its cache when their sync has failed, and
    does not write them any more."""

    def __init__(self) -> None:
        self.fails = False
        self._synced: dict[str, int] = {}
        """The bytes of each file that the device has."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fdatasync(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if self.fails:
            self.fails = False
            raise OSError(errno.EIO, "not written", path)
        self._synced[path] = os.stat(path).st_size
        os.fdatasync(descriptor)

    def posix_fadvise(self, descriptor: int, offset: int, length: int, advice: int) -> None:
        """The cache is dropped: what is read from now on is what the device has."""
        assert (offset, length, advice) == (0, 0, os.POSIX_FADV_DONTNEED)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        os.truncate(path, self._synced[path])


def test_given_a_sync_that_failed_when_the_region_is_opened_again_then_the_cache_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = CachingOs()
    monkeypatch.setattr(local_disk, "os", kernel)
    where = place(LocalDisk(), str(tmp_path / "region"))
    region = Region.create(where, SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})
    kernel.fails = True
    with pytest.raises(Unknown):
        write(region, "s-2", {b"b": (2, "y")})
    region.close()

    region = Region.open(where, order(1))

    assert contents(region) == {b"a": (1, "x")}
    assert not write(region, "s-2", {b"b": (2, "y")}).repeated
