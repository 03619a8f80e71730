"""Writes one immutable Parquet file of rows, sorted by key and newest first, and describes it.

Value columns are named `c{id}` and bear `PARQUET:field_id` = the column's id.
"""

import io
import posixpath
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataplane.region.disk.disk import AppendFile, Disk
from dataplane.region.files.block_sums import BLOCK_BYTES, sums_of
from dataplane.region.files.footer import (
    BLOCK_SUMS,
    GROUP_BYTES,
    KEY_FILTERS,
    MIXED_GROUPS,
    encode_numbers,
)
from dataplane.region.files.key_filter import (
    BITS_OF_A_KEY,
    FILTER_KEYS,
    FilterBuilder,
    span_numbers,
)
from dataplane.region.format.checksum import RowsDigest
from dataplane.region.format.columns import KEY, OP, PUT, SYSTEM, VERSION, ColumnDef, file_schema
from dataplane.region.format.conforming import conformed
from dataplane.region.format.families import ROWS
from dataplane.region.format.key_range import lower_bound, upper_bound
from dataplane.region.format.parts import PartSize, gathered
from dataplane.region.format.row_hash import Hashes
from dataplane.region.format.stored_digest import digest_with_keys, stored_text
from dataplane.region.manifests.manifest import Decoded, FileEntry
from metasrv_base.errors import MetaError

ROW_GROUP = PartSize(rows=2048, bytes=512 << 10)
"""The most of one row group. A read of one key decodes one row group of each file; a row group
costs the footer about 100 bytes for a column."""
HASHED_GROUPS = 4
HASHED_BYTES = 1 << 20
"""Row groups that are hashed together, unless fewer have so many bytes."""
PAGE_BYTES = 64 << 10  # of a column: what a scan holds of each, for every file in its window
COMPRESSION = "lz4"  # decision 152
_VALUES_AT_A_TIME = 256  # between two looks whether a page is full
_CHUNK_BYTES = 1 << 20
_WRITING_BYTES = 5 << 20  # row groups that are hashed, one that is encoded, and what is written
_WRITTEN_COLUMN_BYTES = PAGE_BYTES
_HASHED_BYTES_OF_A_KEY = 32  # hashes, twice, and a byte for each bit of a filter
GROUP_COLUMN_BYTES = 1_800
"""The memory that the footer takes for a column of a row group: Parquet's writer keeps an entry of
about 1.1 KB until the file ends, and encodes all of them then; measured."""


@dataclass(frozen=True, slots=True)
class FileTarget:
    """The place of a new file: `name` is relative to `root`; its folder exists."""

    disk: Disk
    root: str
    name: str
    columns: Sequence[ColumnDef]
    """The columns of the family."""
    family: int = ROWS


def row_groups(rows: int, row_bytes: int) -> int:
    """The number of row groups of a file with that many rows, which have *row_bytes* in all. About:
    rows are taken to be of one size."""
    mean = max(row_bytes // max(rows, 1), 1)
    return -(-rows // max(min(ROW_GROUP.rows, ROW_GROUP.bytes // mean), 1))


def writing_bytes(rows: int, columns: int, groups: int) -> int:
    """The memory that `write_rows` takes beside the rows that it is given, for a file of *groups*
    row groups; measured. *columns*: those of the table."""
    hashed = min(rows, FILTER_KEYS) * _HASHED_BYTES_OF_A_KEY + rows * BITS_OF_A_KEY // 8
    footer = groups * (columns + len(SYSTEM)) * GROUP_COLUMN_BYTES
    return hashed + columns * _WRITTEN_COLUMN_BYTES + _WRITING_BYTES + footer


@dataclass
class _Stats:
    digest: RowsDigest = field(default_factory=RowsDigest)
    filters: FilterBuilder = field(default_factory=FilterBuilder)
    min_key: bytes = b""
    max_key: bytes = b""
    min_version: int = 0
    max_version: int = 0
    mixed: set[int] = field(default_factory=set)
    """Row groups that are no plain ones (`footer.Footer.mixed`)."""
    _rows: int = 0
    _hashed: int = 0
    """Row groups that are hashed, which are the first ones."""
    _last_hash: int | None = None
    """The hash of the last key in those row groups."""
    _waiting: list[pa.Table] = field(default_factory=list)
    _waiting_bytes: int = 0

    def add(self, table: pa.Table) -> None:
        """Counts one row group. Row groups come in order."""
        keys = table.column(KEY)
        first, last = keys[0].as_py(), keys[len(keys) - 1].as_py()
        assert self._rows == 0 or self.max_key <= first, "rows are not sorted by key"
        span = pc.min_max(table.column(VERSION)).as_py()
        if self._rows == 0:
            self.min_key, self.min_version = first, span["min"]
        self.max_key = last
        self.min_version = min(self.min_version, span["min"])
        self.max_version = max(self.max_version, span["max"])
        self._rows += table.num_rows
        self._waiting.append(table)
        self._waiting_bytes += table.nbytes
        if len(self._waiting) == HASHED_GROUPS or self._waiting_bytes >= HASHED_BYTES:
            self._hash()

    def end(self) -> None:
        if self._waiting:
            self._hash()
        self.filters.end()

    def _hash(self) -> None:
        """Row groups that wait, together: numpy needs some thousands of rows at a time."""
        rows = pa.concat_tables(self._waiting).combine_chunks()
        digest, hashes = digest_with_keys(rows)
        self.digest = self.digest + digest
        self.filters.add(hashes, len(self._waiting))
        self._find_mixed(np.asarray(rows.column(OP)), hashes)
        self._hashed += len(self._waiting)
        self._waiting, self._waiting_bytes = [], 0

    def _find_mixed(self, ops: npt.NDArray[np.uint8], hashes: Hashes) -> None:
        """Rows of one key are neighbours, and so are their hashes. Two keys with one hash, which
        are taken for one, cost a merge."""
        again = np.flatnonzero(hashes[1:] == hashes[:-1])
        rows = np.concatenate([np.flatnonzero(ops != PUT), again, again + 1])
        ends = np.cumsum([table.num_rows for table in self._waiting])
        self.mixed.update((self._hashed + np.searchsorted(ends, rows, "right")).tolist())
        if self._last_hash == hashes[0]:
            self.mixed.update((self._hashed - 1, self._hashed))
        self._last_hash = int(hashes[-1])


def write_rows(target: FileTarget, tables: Iterable[pa.Table]) -> FileEntry:
    """Streams `tables` (`columns.file_schema`, sorted through all of them; at least one row) into
    a new file and syncs it. The caller syncs the folder and publishes the entry.
    """
    path = posixpath.join(target.root, target.name)
    file = target.disk.create(path)
    try:
        with closing(file):
            return _written(target, _Sink(file), tables)
    except MetaError:
        with suppress(MetaError):  # on a full disk its room is needed; else it is obsolete
            target.disk.remove(path)
        raise


def _written(target: FileTarget, sink: "_Sink", tables: Iterable[pa.Table]) -> FileEntry:
    schema = file_schema(target.columns)
    stats = _Stats()
    groups = (
        conformed(table, schema) for table in gathered(tables, ROW_GROUP)
    )  # or as before a column
    first = next(groups, None)
    assert first is not None, "a file without rows"
    group_bytes = []
    with pq.ParquetWriter(
        pa.PythonFile(sink, mode="w"),
        schema,
        compression=COMPRESSION,
        use_dictionary=_repeating(first),
        write_statistics=[KEY],
        data_page_size=PAGE_BYTES,
        dictionary_pagesize_limit=PAGE_BYTES,
        write_batch_size=_VALUES_AT_A_TIME,
    ) as writer:
        for rows in chain([first], groups):
            stats.add(rows)
            writer.write_table(rows)
            group_bytes.append(rows.nbytes)
        stats.end()
        for key_filter in stats.filters.filters:
            sink.write(key_filter.bits)
        ours = {
            KEY_FILTERS: span_numbers(stats.filters.spans),
            BLOCK_SUMS: sink.end_body(),
            GROUP_BYTES: group_bytes,
            MIXED_GROUPS: sorted(stats.mixed),
        }
        writer.add_key_value_metadata({name: encode_numbers(ours[name]) for name in ours})
    sink.finish()
    return FileEntry(
        root=None,
        name=target.name,
        family=target.family,
        bytes=sink.bytes,
        crc32=f"{sink.crc:08x}",
        footer_bytes=sink.footer_bytes,
        footer_crc32=f"{sink.footer_crc:08x}",
        rows=stats.digest.rows,
        row_checksum=stored_text(stats.digest),
        min_key=lower_bound(stats.min_key).hex(),
        max_key=upper_bound(stats.max_key).hex(),
        min_version=stats.min_version,
        max_version=stats.max_version,
        decoded=Decoded(
            row_groups=len(group_bytes), bytes=sum(group_bytes), largest=max(group_bytes)
        ),
    )


def _repeating(rows: pa.Table) -> list[str]:
    """Value columns that are worth a dictionary, judged by the first row group: each of their
    values comes twice or more. A dictionary of values that differ takes half of a file's time."""
    values = (name for name in rows.column_names if name not in SYSTEM)
    return [name for name in values if 2 * len(rows.column(name).unique()) <= rows.num_rows]


class _Sink(io.RawIOBase):
    """The output file of Arrow's writer: gathers small writes and computes checksums."""

    def __init__(self, file: AppendFile) -> None:
        self._file = file
        self._pending = bytearray()
        self._is_body = True
        self._sums: list[int] = []
        self.bytes = 0
        self.crc = 0
        self.footer_bytes = 0
        self.footer_crc = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        self._pending += view
        if self._is_body and len(self._pending) >= _CHUNK_BYTES:
            self._pass_on_body(len(self._pending) // BLOCK_BYTES * BLOCK_BYTES)
        return view.nbytes

    def tell(self) -> int:
        return self.bytes + len(self._pending)

    def end_body(self) -> Sequence[int]:
        """Ends the body: later writes are the footer, which is kept whole until `finish`. Returns
        the checksums of the body's blocks."""
        self._pass_on_body(len(self._pending))
        self._is_body = False
        return self._sums

    def finish(self) -> None:
        footer = bytes(self._pending)
        self.footer_bytes, self.footer_crc = len(footer), zlib.crc32(footer)
        self._pass_on(footer)
        self._file.sync()

    def _pass_on_body(self, length: int) -> None:
        data = bytes(self._pending[:length])
        del self._pending[:length]
        self._sums += sums_of(data)
        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        if data:
            self._file.append(data)
            self.bytes += len(data)
            self.crc = zlib.crc32(data, self.crc)
