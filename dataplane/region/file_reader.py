"""Reads a region's Parquet file in parts: the row groups that can hold the keys asked for."""

import posixpath
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from base.errors import Corrupt
from dataplane.region.block_cache import BlockCache, BlockKey
from dataplane.region.block_sums import Body, CheckedBody, decode_sums
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
    body: Body
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
        footer = self._footer()
        source = CheckedBody(self._disk, footer.body)
        with (
            _reading(self),
            pq.ParquetFile(
                source, metadata=footer.metadata, buffer_size=PAGE_BYTES, pre_buffer=False
            ) as file,
        ):
            for batch in file.iter_batches(rows, groups, names, use_threads=False):
                table = conformed(pa.Table.from_batches([batch]), schema)
                yield cut_to_range(table, keys)

    def mean_row_bytes(self) -> int:
        """Of all columns, decoded, about; at least 1."""
        metadata = self._footer().metadata
        groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
        mean: int = sum(group.total_byte_size for group in groups) // max(metadata.num_rows, 1)
        return max(mean, 1)

    def _footer(self) -> Footer:
        # Not `cached_property`: in Python 3.11 it has one lock for all instances, held during I/O.
        if self._read_footer is None:
            body_bytes = self.entry.bytes - self.entry.footer_bytes
            with _reading(self):
                data = self._disk.read(self.path, body_bytes, self.entry.footer_bytes)
                if f"{zlib.crc32(data):08x}" != self.entry.footer_crc32:
                    raise Corrupt(path=self.path, reason="the footer's checksum is wrong")
                metadata = pq.read_metadata(pa.BufferReader(data))
            body = Body(self.path, body_bytes, decode_sums(metadata.metadata, self.path))
            self._read_footer = Footer(metadata, body, tuple(self._bounds(metadata)))
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
        footer = self._footer()
        source = CheckedBody(self._disk, footer.body)
        with _reading(self), pq.ParquetFile(source, metadata=footer.metadata) as file:
            return file.read_row_group(group, columns=list(names), use_threads=False)


@contextmanager
def _reading(reader: FileReader) -> Iterator[None]:
    """Turns what can go wrong under Arrow into our errors."""
    try:
        with lost_if_unreadable(reader.root, reader.entry.name):
            yield
    except (pa.ArrowException, OSError) as error:
        raise Corrupt(path=reader.path, reason="the file cannot be decoded") from error
