"""Files that a job writes, and reads back."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataplane.pipelines.jobs.executor import Output, read_back
from dataplane.region.disk.disk import Disk
from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.files.file_writer import HASHED_GROUPS, ROW_GROUP, FileTarget, write_rows
from dataplane.region.format.columns import ColumnDef, file_schema
from dataplane.region.manifests.adoption import data_file
from dataplane.region.manifests.manifest import FileEntry
from metasrv_base.errors import Corrupt, Unavailable

COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="string", nullable=True),
    ColumnDef(id=3, type="timestamp(s)", nullable=True),
)
NAME = "one.parquet"


def rows(count: int) -> pa.Table:
    columns = [
        [b"k%08d" % number for number in range(count)],
        [1] * count,
        [0] * count,
        list(range(count)),
        [f"kind {number % 7}" for number in range(count)],
        list(range(count)),
    ]
    schema = file_schema(COLUMNS)
    arrays = [pa.array(column, type) for column, type in zip(columns, schema.types, strict=True)]
    return pa.table(arrays, schema=schema)


def written(folder: Path, table: pa.Table) -> FileEntry:
    return write_rows(FileTarget(LocalDisk(), str(folder), NAME, COLUMNS), [table])


def test_given_columns_when_written_then_only_those_that_repeat_have_a_dictionary(
    tmp_path: Path,
) -> None:
    written(tmp_path, rows(3 * ROW_GROUP.rows))

    group = pq.read_metadata(tmp_path / NAME).row_group(0)

    chunks = (group.column(at) for at in range(group.num_columns))
    assert {one.path_in_schema for one in chunks if one.has_dictionary_page} == {"c2"}


@pytest.mark.parametrize("count", [1, ROW_GROUP.rows + 1, (2 * HASHED_GROUPS + 1) * ROW_GROUP.rows])
def test_given_a_written_file_when_read_back_then_it_has_the_rows(
    tmp_path: Path, count: int
) -> None:
    table = rows(count)
    entry = written(tmp_path, table)

    found = pa.concat_tables(read_back(LocalDisk(), str(tmp_path), data_file(entry), COLUMNS))

    assert found.equals(table)


@pytest.mark.parametrize("disk", [LocalDisk(), MemoryDisk(MemoryStore())], ids=["local", "memory"])
def test_given_a_region_that_was_dropped_when_a_late_task_writes_then_its_folder_stays_gone(
    tmp_path: Path, disk: Disk
) -> None:
    root = tmp_path / "regions" / "4398046511104-1"
    disk.make_folder(str(root.parent))

    with pytest.raises(Unavailable, match="region-lost"):
        Output(disk, str(root), "attempts/a/late.parquet").make_folder()

    assert disk.list(str(root.parent)) == []


def test_given_a_damaged_byte_when_read_back_then_it_is_found_wherever_it_is(
    tmp_path: Path,
) -> None:
    file, path = data_file(written(tmp_path, rows(100))), tmp_path / NAME
    sound = path.read_bytes()

    for place in [*range(0, len(sound), 61), len(sound) - 1]:
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        with pytest.raises(Corrupt):
            list(read_back(LocalDisk(), str(tmp_path), file, COLUMNS))


def test_given_blocks_with_wrong_checksums_when_read_back_then_it_is_corrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later readers believe the footer: what the writer put there is compared, too."""
    monkeypatch.setattr("dataplane.region.files.file_writer.sums_of", lambda data: [1])
    file = data_file(written(tmp_path, rows(100)))

    with pytest.raises(Corrupt, match="block"):
        list(read_back(LocalDisk(), str(tmp_path), file, COLUMNS))
