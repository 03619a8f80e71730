"""Reads a region's Parquet file in parts: the row groups that can hold the keys asked for."""

import io
import posixpath
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from base.errors import Corrupt
from dataplane.region.block_cache import BlockCache, BlockKey
from dataplane.region.columns import KEY, SYSTEM, ColumnDef, conformed, file_schema
from dataplane.region.disk import Disk
from dataplane.region.file_writer import PAGE_BYTES
from dataplane.region.key_range import KeyRange, cut_to_range
from dataplane.region.lost import lost_if_unreadable
from dataplane.region.manifest import FileEntry

SCAN_ROWS = 8192  # a row group: nothing is gained by more


@dataclass(frozen=True, slots=True)
class FileSource:
    """How a region reaches its files. `own_root`: for entries that name no root."""

    disk: Disk
    own_root: str
    cache: BlockCache


@dataclass(frozen=True, slots=True)
class Footer:
    metadata: pq.FileMetaData
    bounds: tuple[tuple[bytes, bytes], ...]
    """The least and greatest key of each row group."""


class FileReader:
    """One file, read-only and safe for threads; holds its footer and nothing else."""

    def __init__(self, source: FileSource, entry: FileEntry) -> None:
        self.entry = entry
        self.root = entry.root or source.own_root
        self.path = posixpath.join(self.root, entry.name)
        self.min_key = bytes.fromhex(entry.min_key)
        self.max_key = bytes.fromhex(entry.max_key)
        self._disk = source.disk
        self._cache = source.cache
        self._read_footer: Footer | None = None

    def verify_present(self) -> None:
        """Raises Unavailable `region-lost` if the file is not there in its full size."""
        with lost_if_unreadable(self.root, self.entry.name):
            size = self._disk.size(self.path)
        if size != self.entry.bytes:
            raise Corrupt(path=self.path, bytes=size, expected=self.entry.bytes)

    def rows_of(self, keys: Sequence[bytes], columns: Sequence[ColumnDef]) -> pa.Table:
        """The stored rows of the given keys, which are sorted; the newest of a key first."""
        schema = file_schema(columns)
        parts = []
        for group, (low, high) in enumerate(self._footer().bounds):
            start, end = bisect_left(keys, low), bisect_left(keys, high + b"\x00")
            if start == end:
                continue
            wanted = pa.array(keys[start:end], pa.binary())
            mask = pc.is_in(self._block(group, ()).column(KEY), value_set=wanted)
            if pc.any(mask).as_py():
                parts.append(conformed(self._block(group, columns).filter(mask), schema))
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def scan(
        self, keys: KeyRange, columns: Sequence[ColumnDef], rows: int = SCAN_ROWS
    ) -> Iterator[pa.Table]:
        """At most `rows` at a time, past the cache: a scan must not wash out what points read."""
        bounds = enumerate(self._footer().bounds)
        groups = [group for group, (low, high) in bounds if keys.overlaps(low, high)]
        schema, names = file_schema(columns), list(self._names(columns))
        source = _DiskReader(self._disk, self.path, self.entry.bytes)
        metadata = self._footer().metadata
        with (
            _reading(self),
            pq.ParquetFile(
                source, metadata=metadata, buffer_size=PAGE_BYTES, pre_buffer=False
            ) as file,
        ):
            for batch in file.iter_batches(rows, groups, names, use_threads=False):
                table = conformed(pa.Table.from_batches([batch]), schema)
                yield cut_to_range(table, keys)

    def _footer(self) -> Footer:
        # Not `cached_property`: in Python 3.11 it has one lock for all instances, held during I/O.
        if self._read_footer is None:
            with _reading(self):
                metadata = pq.read_metadata(_DiskReader(self._disk, self.path, self.entry.bytes))
            self._read_footer = Footer(metadata, tuple(self._bounds(metadata)))
        return self._read_footer

    def _bounds(self, metadata: pq.FileMetaData) -> Iterator[tuple[bytes, bytes]]:
        """The file's own least and greatest key where a row group does not say."""
        at = metadata.schema.names.index(KEY)
        for group in range(metadata.num_row_groups):
            stats = metadata.row_group(group).column(at).statistics
            known = stats is not None and stats.has_min_max
            yield (stats.min, stats.max) if known else (self.min_key, self.max_key)

    def _names(self, columns: Sequence[ColumnDef]) -> tuple[str, ...]:
        stored = set(self._footer().metadata.schema.names)
        return (*SYSTEM, *(column.name for column in columns if column.name in stored))

    def _block(self, group: int, columns: Sequence[ColumnDef]) -> pa.Table:
        names = self._names(columns)
        key = BlockKey(self.path, group, names)
        return self._cache.read(key, lambda: self._decode(group, names))

    def _decode(self, group: int, names: tuple[str, ...]) -> pa.Table:
        source = _DiskReader(self._disk, self.path, self.entry.bytes)
        with _reading(self), pq.ParquetFile(source, metadata=self._footer().metadata) as file:
            return file.read_row_group(group, columns=list(names), use_threads=False)


@contextmanager
def _reading(reader: FileReader) -> Iterator[None]:
    """Turns what can go wrong under Arrow into our errors."""
    try:
        with lost_if_unreadable(reader.root, reader.entry.name):
            yield
    except (pa.ArrowException, OSError) as error:
        raise Corrupt(path=reader.path, reason="the file cannot be decoded") from error


class _DiskReader(io.RawIOBase):
    """The file as Arrow wants to see it. Not shared between threads."""

    def __init__(self, disk: Disk, path: str, length: int) -> None:
        self._disk = disk
        self._path = path
        self._length = length
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        data = self._disk.read(self._path, self._at, self._length if size < 0 else size)
        self._at += len(data)
        return data
