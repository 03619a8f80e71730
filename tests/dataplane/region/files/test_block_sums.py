"""Damage that Parquet's own page checksums detect, beside our checksums of blocks (decision 124).

Where the first test fails, a newer Arrow checks headers, too: look at the decision again.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataplane.region.disk.memory_disk import MemoryDisk, MemoryStore
from dataplane.region.files import file_writer
from dataplane.region.files.block_cache import BlockCache
from dataplane.region.files.file_reader import FileReader, FileSource
from dataplane.region.files.file_writer import FileTarget, write_rows
from dataplane.region.format.columns import ColumnDef, file_schema
from dataplane.region.format.key_range import KeyRange
from dataplane.region.format.parts import PartSize
from dataplane.region.manifests.manifest import FileEntry
from metasrv_base.errors import Corrupt

COLUMNS = (
    ColumnDef(id=1, type="int64", nullable=False),
    ColumnDef(id=2, type="string", nullable=True),
    ColumnDef(id=3, type="string", nullable=False),
)
GROUP_ROWS, ROWS = 60, 180
AT_ONCE = PartSize(rows=50, bytes=1 << 20)
HEADER_BYTES = 24
"""The size of a page, at most, where its sizes are small."""
PATH = "/one.parquet"


class Stored:
    """A file in memory, with page checksums besides ours."""

    def __init__(self) -> None:
        schema = file_schema(COLUMNS)
        columns = [
            [b"k%08d" % number for number in range(ROWS)],
            [1_000_000 + 97 * number % 1009 for number in range(ROWS)],
            [0] * ROWS,
            [number * number for number in range(ROWS)],
            [f"kind {number % 7}" for number in range(ROWS)],
            [f"{number % 5}" for number in range(ROWS)],
        ]
        self.table = pa.table([*map(pa.array, columns, schema.types)], schema=schema)
        self.store = MemoryStore()
        target = FileTarget(MemoryDisk(self.store), "/", PATH[1:], COLUMNS)
        self.entry: FileEntry = write_rows(target, [self.table])
        self.data = bytes(self.store.live[PATH].data)
        self.metadata = pq.read_metadata(pa.BufferReader(self.data))

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Where each column of each row group begins, and its bytes."""
        for group in range(self.metadata.num_row_groups):
            for at in range(self.metadata.num_columns):
                chunk = self.metadata.row_group(group).column(at)
                first = chunk.dictionary_page_offset or chunk.data_page_offset
                yield first, chunk.total_compressed_size

    def is_wrong_by_pages(self, data: bytes) -> bool:
        """Whether a scan that checks pages alone gives a wrong row, be it before an error."""
        first = 0
        try:
            with pq.ParquetFile(
                pa.BufferReader(data),
                metadata=self.metadata,
                buffer_size=file_writer.PAGE_BYTES,
                page_checksum_verification=True,
            ) as file:
                for batch in file.iter_batches(AT_ONCE.rows, use_threads=False):
                    if not pa.Table.from_batches([batch]).equals(
                        self.table.slice(first, batch.num_rows)
                    ):
                        return True
                    first += batch.num_rows
        except (OSError, pa.ArrowException):
            return False
        return first != ROWS

    def must_be_corrupt_by_blocks(self, data: bytes) -> None:
        self.store.live[PATH].data[:] = data
        source = FileSource(MemoryDisk(self.store), "/", BlockCache())
        with pytest.raises(Corrupt):
            list(FileReader(source, self.entry).scan(KeyRange(), COLUMNS, AT_ONCE))


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Stored:
    monkeypatch.setattr(file_writer, "ROW_GROUP", PartSize(rows=GROUP_ROWS, bytes=1 << 20))
    checked = partial(pq.ParquetWriter, write_page_checksum=True)
    monkeypatch.setattr(pq, "ParquetWriter", checked)
    return Stored()


def test_given_a_bit_of_a_page_header_when_flipped_then_pages_give_wrong_rows_and_blocks_none(
    stored: Stored,
) -> None:
    wrong = []
    for first, _ in islice(stored.chunks(), len(stored.table.columns)):
        for bit in range(first * 8, (first + HEADER_BYTES) * 8):
            damaged = bytearray(stored.data)
            damaged[bit // 8] ^= 1 << bit % 8
            if stored.is_wrong_by_pages(bytes(damaged)):
                wrong.append(bit)
                stored.must_be_corrupt_by_blocks(bytes(damaged))

    assert wrong


def test_given_a_page_that_holds_the_bytes_of_another_then_pages_give_wrong_rows_and_blocks_none(
    stored: Stored,
) -> None:
    """A write that went astray: the page is whole, in the wrong place."""
    chunks = list(stored.chunks())
    wrong = 0
    for first, length in chunks:
        for other, same in chunks:
            if other == first or same != length:
                continue
            damaged = bytearray(stored.data)
            damaged[first : first + length] = stored.data[other : other + length]
            if bytes(damaged) != stored.data and stored.is_wrong_by_pages(bytes(damaged)):
                wrong += 1
                stored.must_be_corrupt_by_blocks(bytes(damaged))

    assert wrong


def test_given_a_flip_inside_a_page_then_both_find_it(stored: Stored) -> None:
    for first, length in stored.chunks():
        damaged = bytearray(stored.data)
        damaged[first + length - 1] ^= 1
        assert not stored.is_wrong_by_pages(bytes(damaged))
        stored.must_be_corrupt_by_blocks(bytes(damaged))
