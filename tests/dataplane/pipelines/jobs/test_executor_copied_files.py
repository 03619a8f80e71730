"""A file that is copied to another root: whose fault it is when the copy is damaged."""

import zlib
from pathlib import Path

import pytest

from dataplane.pipelines.jobs.executor import Output, copy_file
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import ColumnDef
from dataplane.region.manifests.adoption import data_file
from metasrv_base.errors import Corrupt, Unavailable
from metasrv_base.wire.node.inputs import BorrowedFile
from tests.dataplane.region.files.stored import stored
from tests.dataplane.region.rig import SPEC

COLUMNS: tuple[ColumnDef, ...] = SPEC.columns
NAME = "one.parquet"


class DamagingDisk(LocalDisk):
    """Each copy has one byte that is not the source's."""

    def copy(self, source: str, target: str) -> int:
        super().copy(source, target)
        damaged = b"?" + Path(target).read_bytes()[1:]
        Path(target).write_bytes(damaged)
        return zlib.crc32(damaged)


@pytest.fixture
def source(tmp_path: Path) -> BorrowedFile:
    (tmp_path / "own").mkdir()
    root = tmp_path / "source"
    root.mkdir()
    entry = write_rows(FileTarget(LocalDisk(), str(root), NAME, COLUMNS), [stored(range(100))])
    return BorrowedFile(root=str(root), file=data_file(entry))


def test_given_a_file_when_copied_then_the_bytes_are_those_of_its_manifest(
    tmp_path: Path, source: BorrowedFile
) -> None:
    copied = copy_file(source, Output(LocalDisk(), str(tmp_path / "own"), f"attempt/{NAME}"))

    data = (tmp_path / "own" / "attempt" / NAME).read_bytes()
    assert (len(data), f"{zlib.crc32(data):08x}") == (copied.bytes, copied.checksum)
    assert copied == source.file.model_copy(update={"name": f"attempt/{NAME}"})


def test_given_a_copy_that_is_damaged_when_the_source_is_sound_then_it_is_tried_again(
    tmp_path: Path, source: BorrowedFile
) -> None:
    with pytest.raises(Unavailable) as refused:
        copy_file(source, Output(DamagingDisk(), str(tmp_path / "own"), NAME))

    assert refused.value.code == "not-ready"


@pytest.mark.parametrize("change", [lambda data: b"?" + data[1:], lambda data: data[:-1]])
def test_given_a_source_that_is_damaged_when_copied_then_it_is_named(
    tmp_path: Path, source: BorrowedFile, change: object
) -> None:
    path = Path(source.root, NAME)
    assert callable(change)
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(Corrupt) as found:
        copy_file(source, Output(LocalDisk(), str(tmp_path / "own"), NAME))

    assert found.value.facts["path"] == str(path)


def test_given_a_source_that_is_gone_when_copied_then_the_region_is_lost(
    tmp_path: Path, source: BorrowedFile
) -> None:
    Path(source.root, NAME).unlink()

    with pytest.raises(Unavailable) as found:
        copy_file(source, Output(LocalDisk(), str(tmp_path / "own"), NAME))

    assert found.value.code == "region-lost"
