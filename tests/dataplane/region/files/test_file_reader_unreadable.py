"""Missing files make a region lost; files that cannot be read at the moment do not."""

import errno
import os
from pathlib import Path

import pytest

from dataplane.region.disk.local_disk import LocalDisk, translated
from dataplane.region.disk.lost import is_lost
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.engine.region import Region
from metasrv_base.errors import MetaError, NotFound, Unavailable, Unknown
from tests.dataplane.region.rig import SPEC, batch, contents, header, order, place, write

NOW = [errno.EMFILE, errno.ENFILE, errno.EIO, errno.EACCES, errno.ENOMEM, errno.ESTALE]
OPERATIONS = ["list", "read", "size"]


class Trouble:
    """A disk that answers *operation* with an error while there is one."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.error: MetaError | None = None
        self.disk = MemoryDisk(MemoryStore(), self._hook)

    def _hook(self, operation: str, path: str) -> None:
        if operation == self.operation and self.error is not None:
            raise self.error


def with_rows(trouble: Trouble) -> Region:
    """In a file, and in the log."""
    region = Region.create(place(trouble.disk), SPEC, epoch=1)
    write(region, "s-1", {b"a": (1, "x")})
    region.maintenance.flush()
    write(region, "s-2", {b"b": (2, "y")})
    return region


@pytest.mark.parametrize("operation", OPERATIONS)
def test_given_a_disk_that_cannot_be_read_now_when_opened_then_it_is_not_lost(
    operation: str,
) -> None:
    trouble = Trouble(operation)
    expected = contents(with_rows(trouble))
    trouble.error = Unavailable("not-ready", errno="EMFILE")

    with pytest.raises(Unavailable) as refusal:
        Region.open(place(trouble.disk), order(2))

    assert not is_lost(refusal.value)
    assert refusal.value.facts["errno"] == "EMFILE"
    trouble.error = None
    assert contents(Region.open(place(trouble.disk), order(2))) == expected


def test_given_no_descriptor_for_the_look_when_written_then_unknown_and_not_lost() -> None:
    trouble = Trouble("list")
    region = with_rows(trouble)
    trouble.error = Unavailable("not-ready", errno="EMFILE")

    (answer,) = region.writer.apply([(header("s-3"), batch({b"c": (3, "z")}))])

    trouble.error = None
    assert isinstance(answer, Unknown)
    assert region.stopped is not None
    assert not is_lost(region.stopped)
    assert b"c" in contents(Region.open(place(trouble.disk), order(2)))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_given_a_disk_that_cannot_be_read_now_when_read_then_the_region_serves_on(
    operation: str,
) -> None:
    trouble = Trouble(operation)
    region = with_rows(trouble)
    trouble.error = Unavailable("not-ready", errno="EIO")

    if operation == "read":
        with pytest.raises(Unavailable) as refusal:
            contents(region)
        assert not is_lost(refusal.value)
    trouble.error = None

    assert len(contents(region)) == 2
    assert region.stopped is None


@pytest.mark.parametrize("number", NOW)
def test_given_an_error_of_now_when_translated_then_it_is_unavailable(number: int) -> None:
    with pytest.raises(Unavailable) as found, translated("/f", "read"):
        raise OSError(number, os.strerror(number))

    assert (found.value.code, found.value.facts["errno"]) == ("not-ready", errno.errorcode[number])


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOTDIR])
def test_given_a_missing_file_when_translated_then_it_is_not_found(number: int) -> None:
    with pytest.raises(NotFound), translated("/f", "read"):
        raise OSError(number, os.strerror(number))


def test_given_no_descriptor_when_a_file_is_made_then_nothing_was_done() -> None:
    with pytest.raises(Unavailable), translated("/f", "create"):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_given_a_file_where_a_folder_was_when_opened_then_the_region_is_lost(
    tmp_path: Path,
) -> None:
    (tmp_path / "region").write_bytes(b"")

    with pytest.raises(Unavailable, match="region-lost"):
        Region.open(place(LocalDisk(), str(tmp_path / "region")), order(1))
