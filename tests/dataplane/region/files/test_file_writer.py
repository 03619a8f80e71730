"""Parquet files: what they say of themselves, and that only needed parts of them are read."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataplane.region.disk.local_disk import LocalDisk
from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.files import file_writer
from dataplane.region.files.block_cache import BlockCache, BlockKey
from dataplane.region.files.block_sums import BLOCK_BYTES
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.file_writer import ROW_GROUP, FileTarget, write_rows
from dataplane.region.files.key_filter import BITS_OF_A_KEY
from dataplane.region.format.checksum import digest_as_text
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize
from dataplane.region.manifests.manifest import FileEntry
from dataplane.region.reads.lookup import WINDOW_BYTES, LookupView, merge_sources
from dataplane.region.reads.merge import MergeSource, merge_live
from metasrv_base.errors import Corrupt, Unavailable
from tests.dataplane.region.files.stored import key, stored
from tests.dataplane.region.rig import SPEC

GROUPS = 40
ROWS = GROUPS * ROW_GROUP.rows


class ReadingDisk(MemoryDisk):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.reads = 0
        self.bytes_read = 0

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = super().read(path, offset, length)
        self.reads += 1
        self.bytes_read += len(data)
        return data


@pytest.fixture
def disk() -> ReadingDisk:
    disk = ReadingDisk()
    disk.make_folder("/disk/data")
    return disk


def written(disk: MemoryDisk, *tables: pa.Table) -> FileEntry:
    return write_rows(FileTarget(disk, "/disk", "data/1-1-1.parquet", SPEC.columns), tables)


def reader_of(disk: MemoryDisk, entry: FileEntry, cache_bytes: int = 1 << 30) -> FileReader:
    return FileReader(FileSource(disk, "/disk", BlockCache(cache_bytes)), entry)


def test_given_a_file_when_written_then_columns_bear_their_ids_and_the_entry_fits(
    tmp_path: Path,
) -> None:
    target = FileTarget(LocalDisk(), str(tmp_path), "one.parquet", SPEC.columns)
    entry = write_rows(target, [stored(range(10)), stored(range(10, 20), version=2)])

    file = pq.ParquetFile(tmp_path / "one.parquet")

    ids = {
        field.name: (field.metadata or {}).get(b"PARQUET:field_id") for field in file.schema_arrow
    }
    assert ids == {"_key": None, "_version": None, "_op": None, "c1": b"1", "c2": b"2"}
    assert file.read().num_rows == entry.rows == 20
    assert entry.bytes == (tmp_path / "one.parquet").stat().st_size
    assert (entry.min_key, entry.max_key) == (key(0).hex(), key(19).hex())
    assert (entry.min_version, entry.max_version) == (1, 2)


def test_given_rows_when_written_then_every_column_is_compressed_by_lz4(disk: ReadingDisk) -> None:
    entry = written(disk, stored(range(3 * ROW_GROUP.rows)))

    assert codecs_of(disk.read(f"/disk/{entry.name}", 0, entry.bytes)) == {"LZ4"}


def codecs_of(file: bytes) -> set[str]:
    """Returns the codecs of all columns of all row groups."""
    found = pq.read_metadata(pa.BufferReader(file))
    groups = map(found.row_group, range(found.num_row_groups))
    return {group.column(at).compression for group in groups for at in range(group.num_columns)}


def test_given_a_large_file_when_one_key_is_read_then_one_row_group_is(disk: ReadingDisk) -> None:
    entry = written(disk, stored(range(ROWS)))
    reader = reader_of(disk, entry)
    reader.rows_of([key(0)], ())  # the footer
    disk.bytes_read = 0

    rows = reader.rows_of([key(3 * ROW_GROUP.rows + 5)], SPEC.columns)

    assert rows.column("c1").to_pylist() == [3 * ROW_GROUP.rows + 5]
    assert disk.bytes_read < entry.bytes / 2
    disk.bytes_read = 0
    reader.rows_of([key(3 * ROW_GROUP.rows + 6)], SPEC.columns)
    assert disk.bytes_read == 0, "the row group is in the cache"


def test_given_files_of_a_merged_region_when_one_key_is_read_then_few_blocks_of_each_are(
    disk: ReadingDisk,
) -> None:
    noise, groups, row_bytes = random.Random(1), 20, 100
    count = groups * ROW_GROUP.rows
    rows = stored(range(0, 2 * count, 2)).drop_columns(["c2"])
    values = [noise.randbytes(row_bytes // 2).hex() for _ in range(count)]
    entry = written(disk, rows.append_column("c2", pa.array(values, pa.string())))
    reader = reader_of(disk, entry)
    reader.rows_of([], ())  # the footer
    group_bytes, filter_bytes = entry.bytes // groups, count * BITS_OF_A_KEY // 8

    disk.reads = disk.bytes_read = 0
    assert reader.rows_of([key(9 * ROW_GROUP.rows)], SPEC.columns).num_rows == 1
    assert disk.reads == 2, "the filter, and the row group as a whole"
    assert disk.bytes_read <= group_bytes + filter_bytes + 4 * BLOCK_BYTES

    disk.reads = disk.bytes_read = 0
    assert reader.rows_of([key(19 * ROW_GROUP.rows + 1)], SPEC.columns).num_rows == 0
    assert disk.reads == 0, "a key that is not there costs a look at the filter"
    assert entry.bytes > 10 * (group_bytes + 6 * BLOCK_BYTES) / 2


def test_given_a_row_group_when_its_keys_are_read_first_then_nothing_is_decoded_twice(
    disk: ReadingDisk,
) -> None:
    cache = BlockCache(1 << 30)
    entry = written(disk, stored(range(ROW_GROUP.rows)))
    reader = FileReader(FileSource(disk, "/disk", cache), entry)
    reader.rows_of([], ())
    footer_bytes = cache.bytes

    assert reader.rows_of([key(1)], ()).num_rows == 1
    keys_bytes = cache.bytes - footer_bytes
    assert reader.rows_of([key(1)], SPEC.columns).column("c1").to_pylist() == [1]
    values_bytes = cache.bytes - footer_bytes - keys_bytes

    assert values_bytes < stored(range(ROW_GROUP.rows)).select(["c1", "c2"]).nbytes + 10_000


def test_given_wide_rows_when_written_then_a_row_group_is_bounded_by_bytes(
    disk: ReadingDisk,
) -> None:
    rows = stored(range(2_000)).drop_columns(["c2"])
    wide = rows.append_column("c2", pa.array(["w" * 10_000] * 2_000, pa.string()))
    entry = written(disk, wide)

    file = pq.ParquetFile(pa.BufferReader(disk.read(f"/disk/{entry.name}", 0, entry.bytes)))

    groups = [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)]
    assert max(groups) * 10_000 <= ROW_GROUP.bytes
    assert sum(groups) == 2_000


def test_given_rows_that_files_hardly_store_when_many_are_read_then_memory_says_how_many_at_once(
    disk: ReadingDisk,
) -> None:
    rows = stored(range(2_000)).drop_columns(["c2"])
    wide = rows.append_column("c2", pa.array(["w" * 10_000] * 2_000, pa.string()))
    reader = reader_of(disk, written(disk, wide))
    files = (reader,) * 16

    sources = merge_sources(LookupView((), files), KeyRange(), SPEC.columns)
    in_hand = [next(source.open()) for source in sources]

    assert reader.entry.bytes < wide.nbytes / 100
    most = max(WINDOW_BYTES, len(files) * ROW_GROUP.bytes)
    assert most / 2 < sum(table.nbytes for table in in_hand) < most * 1.1


def test_given_a_footer_longer_than_what_is_written_at_once_when_read_then_it_is_whole(
    disk: ReadingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_writer, "_CHUNK_BYTES", BLOCK_BYTES)
    monkeypatch.setattr(file_writer, "ROW_GROUP", PartSize(rows=1, bytes=1))
    entry = written(disk, stored(range(200)))

    rows = pa.concat_tables(reader_of(disk, entry).scan(KeyRange(), SPEC.columns))

    assert entry.footer_bytes > 2 * BLOCK_BYTES
    assert rows.column("c1").to_pylist() == list(range(200))


def test_given_keys_all_over_when_read_then_each_is_found_once(disk: ReadingDisk) -> None:
    reader = reader_of(disk, written(disk, stored(range(0, ROWS, 2))))
    wanted = [0, 1, 2 * ROW_GROUP.rows, ROWS - 2, ROWS - 1, ROWS + 5]

    rows = reader.rows_of([key(number) for number in wanted], ())

    assert rows.column("_key").to_pylist() == [key(n) for n in (0, 2 * ROW_GROUP.rows, ROWS - 2)]


def test_given_a_range_when_scanned_then_other_row_groups_are_not_read(disk: ReadingDisk) -> None:
    entry = written(disk, stored(range(ROWS)))
    reader = reader_of(disk, entry)
    start, end = ROW_GROUP.rows + 7, 2 * ROW_GROUP.rows + 3
    reader.rows_of([key(0)], ())  # the footer
    disk.bytes_read = 0

    parts = list(reader.scan(KeyRange(key(start), key(end)), SPEC.columns))

    assert [number for part in parts for number in part.column("c1").to_pylist()] == list(
        range(start, end)
    )
    assert disk.bytes_read < entry.bytes * 3 / 4


def test_given_a_file_that_is_gone_or_cut_when_read_then_it_says_so(disk: ReadingDisk) -> None:
    entry = written(disk, stored(range(100)))
    path = "/disk/data/1-1-1.parquet"
    data = disk.store.live[path].data
    del data[200:]
    with pytest.raises(Corrupt):
        reader_of(disk, entry).verify_present()
    with pytest.raises(Corrupt):
        reader_of(disk, entry).rows_of([key(1)], ())
    disk.remove(path)
    for act in (reader_of(disk, entry).verify_present, lambda: _scan(reader_of(disk, entry))):
        with pytest.raises(Unavailable) as refusal:
            act()
        assert refusal.value.code == "region-lost"


def _scan(reader: FileReader) -> None:
    list(reader.scan(KeyRange(), ()))


def test_given_a_small_cache_when_filled_then_the_oldest_go() -> None:
    table = stored(range(5_000))
    cache = BlockCache(int(table.nbytes * 2.5))
    decoded: list[int] = []

    def read(group: int) -> None:
        def decode() -> pa.Table:
            decoded.append(group)
            return table

        cache.read(BlockKey("f", group, ()), decode)

    for group in (1, 2, 1, 3, 1, 2):
        read(group)

    assert decoded == [1, 2, 3, 2]
    assert cache.bytes <= table.nbytes * 2.5


def test_given_one_key_across_the_end_of_tables_when_merged_then_its_newest_row_wins() -> None:
    tables = [
        pa.concat_tables([stored(range(1), 9), stored(range(1), 8)]),
        pa.concat_tables([stored(range(1), 7), stored(range(1, 3), 7)]),
        pa.concat_tables([stored(range(2, 3), 6), stored(range(3, 4), 6)]),
    ]
    other = [stored(range(1), 8, op=1), stored(range(2, 4), 8, op=1)]

    merged = pa.concat_tables(
        merge_live([MergeSource(b"", lambda: iter(tables)), MergeSource(b"", lambda: iter(other))])
    )

    assert merged.column("_key").to_pylist() == [key(0), key(1)]
    assert merged.column("_version").to_pylist() == [9, 7]


def test_given_the_golden_file_when_read_then_its_rows_are_there() -> None:
    golden = Path(__file__).parents[3] / "golden" / "region"
    entry = FileEntry.model_validate_json((golden / "rows.json").read_text())
    reader = FileReader(FileSource(LocalDisk(), str(golden), BlockCache()), entry)
    reader.verify_present()

    (rows,) = reader.scan(KeyRange(), SPEC.columns)

    assert codecs_of((golden / entry.name).read_bytes()) == {"ZSTD"}, "of before decision 152"
    assert rows.equals(stored(range(10)).cast(rows.schema))
    assert digest_as_text(rows).hex == entry.row_checksum, "as it was before"
    assert reader.rows_of([key(7)], SPEC.columns).column("c1").to_pylist() == [7]
