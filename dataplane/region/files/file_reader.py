"""Reads a region's Parquet file in parts: the row groups that can hold the keys asked for."""

import base64
import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataplane.region.disk.disk import Disk
from dataplane.region.disk.lost import lost_if_missing
from dataplane.region.files.block_cache import BlockCache, BlockKey, Blocks, ResidentBlocks
from dataplane.region.files.block_sums import CheckedBody, CheckedSpan
from dataplane.region.files.file_writer import PAGE_BYTES
from dataplane.region.files.footer import MEMORY_PER_BYTE, Footer, RowGroup, read_footer
from dataplane.region.files.key_filter import KeyFilter
from dataplane.region.format.columns import (
    KEY,
    OP,
    PUT,
    SYSTEM,
    ColumnDef,
    file_schema,
    value_fields,
)
from dataplane.region.format.conforming import conformed
from dataplane.region.format.key_range import KeyRange, cut_to_range, key_after, rows_below
from dataplane.region.format.parts import PartSize
from dataplane.region.format.room import LookupRoom
from dataplane.region.format.row_hash import Hashes, hashes_of_keys
from dataplane.region.manifests.manifest import Decoded, FileEntry
from metasrv_base.errors import Corrupt, Unavailable

SCAN = PartSize(rows=1 << 20, bytes=1 << 20)
"""The largest part of a file that a scan decodes at once; with many files each has a share."""
_GROUPS_AT_ONCE = 32
"""Row groups that a scan looks at before it reads them: a short one of a long file looks at few."""
SPAN_BYTES_MAX = 1 << 20
"""Bytes of a file that are read together; row groups that are larger are read column by column."""
COLUMN_BYTES = 20_000  # measured: what allocators keep of a column that is decoded part by part
_OPEN_BYTES = 100_000
FEW_KEYS = 8
"""The most keys that are searched for one by one in a row group."""
_FILTER = "_filter"  # no column
_ARROW_SCHEMA = b"ARROW:schema"  # as Arrow's own writer of Parquet stores it


@dataclass(frozen=True, slots=True)
class FileSource:
    """The disk and the cache that a region reads files with. `own_root`: for entries that name no
    root."""

    disk: Disk
    own_root: str
    cache: BlockCache


class ScanSize(NamedTuple):
    """Bytes of a file that is scanned."""

    part: int
    """Bytes decoded at a time."""
    group: int
    """Decoded bytes of the largest row group."""
    total: int
    """Decoded bytes of all columns."""
    fixed: int
    """Bytes taken besides."""


class FileReader:
    """One file, read-only and safe for threads; holds nothing of it."""

    def __init__(self, source: FileSource, entry: FileEntry) -> None:
        self.entry = entry
        self.root = entry.root or source.own_root
        self.path = posixpath.join(self.root, entry.name)
        self.min_key = bytes.fromhex(entry.min_key)
        self.max_key = bytes.fromhex(entry.max_key)
        self._source = source
        self._disk = source.disk
        self._cache: Blocks = source.cache

    @cached_property
    def resident(self) -> "FileReader":
        """The same file as far as it is in memory: reads by key raise NotResidentError for what is
        not, and scans are not to be begun."""
        reader = copy(self)
        reader._cache = ResidentBlocks(self._source.cache)
        return reader

    def verify_present(self) -> None:
        """Raises Unavailable `region-lost` if the file is not there in its full size."""
        with lost_if_missing(self.root, self.entry.name):
            size = self._disk.size(self.path)
        if size != self.entry.bytes:
            raise Corrupt(path=self.path, bytes=size, expected=self.entry.bytes)

    def rows_of(
        self,
        keys: Sequence[bytes],
        columns: Sequence[ColumnDef],
        hashes: Hashes | None = None,
        room: LookupRoom | None = None,
    ) -> pa.Table:
        """The stored rows of the given keys, which are sorted; the newest of a key first. *hashes*:
        of those keys, where the caller has them. Raises NoRoomError where *room* has not enough,
        with the rows of one row group in memory more than it had."""
        schema, footer = file_schema(columns), self._footer()
        if hashes is None:
            hashes = hashes_of_keys(keys)
        likely = self._likely(footer, keys, hashes)
        if not likely:
            return schema.empty_table()
        parts, names = [], _names(footer, columns)[len(SYSTEM) :]
        for group, some in footer.groups_with(likely):
            rows = self._found(footer, group, names, some, len(likely))
            if rows is not None:
                if room is not None:
                    room.take(rows.nbytes)
                parts.append(conformed(rows, schema))
        if len(parts) == 1:
            return parts[0]
        return pa.concat_tables(parts) if parts else schema.empty_table()

    def _likely(self, footer: Footer, keys: Sequence[bytes], hashes: Hashes) -> Sequence[bytes]:
        """The keys that the file's filters do not exclude."""
        if not footer.spans or not keys:
            return keys
        likely: list[bytes] = []
        for number, span in footer.spans_of(keys[0], keys[-1]):
            # A key may stand in two spans.
            start = bisect_left(keys, max(span.low, key_after(likely[-1]) if likely else b""))
            end = bisect_right(keys, span.high)
            if start < end:
                may_hold = self._filter(footer, number).may_hold(hashes[start:end])
                likely += [keys[start + position] for position in np.flatnonzero(may_hold).tolist()]
        return likely

    def _filter(self, footer: Footer, number: int) -> KeyFilter:
        span = footer.spans[number]

        def read() -> KeyFilter:
            body = CheckedBody(self._disk, footer.body)
            with _reading(self):
                body.seek(span.start)
                return KeyFilter(np.frombuffer(body.read(span.end - span.start), np.uint8))

        return self._cache.read(BlockKey(self.path, number, (_FILTER,)), read)

    def scan(
        self, keys: KeyRange, columns: Sequence[ColumnDef], at_once: PartSize = SCAN
    ) -> Iterator[pa.Table]:
        """Row groups of about *at_once*, one at least. No decoder is open between two of them: of
        every column it would hold some pages.

        Past the cache: a scan must not wash out what points read.
        """
        schema, footer = file_schema(columns), self._footer()
        names = _names(footer, columns)

        def answered(groups: Sequence[int]) -> pa.Table:
            rows = file.read_row_groups(groups, list(names), use_threads=False)
            return cut_to_range(conformed(rows, schema), keys)

        with self._open(footer) as file:
            yield from map(answered, _together(footer, footer.groups_of(keys), at_once))

    @property
    def decoded(self) -> Decoded:
        """The size of its rows in memory. Reads the footer where the entry does not say."""
        if self.entry.decoded is not None:
            return self.entry.decoded
        sizes = self._footer().group_bytes
        return Decoded(row_groups=len(sizes), bytes=sum(sizes), largest=max(sizes))

    @property
    def footer_bytes(self) -> int:
        """The memory that its footer takes."""
        return self.entry.footer_bytes * MEMORY_PER_BYTE

    def scan_size(self, columns: Sequence[ColumnDef], share: int) -> "ScanSize":
        """The memory that `scan` needs where it may decode *share* bytes at a time, beside the
        footer."""
        total, group = self.decoded.bytes, self.decoded.largest
        fixed = COLUMN_BYTES * (len(columns) + len(SYSTEM)) + _OPEN_BYTES
        return ScanSize(min(max(share, group), total), group, total, fixed)

    def first_group(self, start: bytes) -> RowGroup | None:
        """The first row group with keys from *start* on; None: there is none."""
        return self._footer().group_at(start)

    def plain_groups(self, start: bytes, horizon: bytes | None) -> list[int]:
        """Neighbouring row groups, the first of which begins at or above *start*, that are plain
        (`footer.Footer.mixed`) and end below *horizon*; about as many as a scan decodes at once."""
        footer = self._footer()
        groups: list[int] = []
        room = SCAN.bytes
        for group in islice(footer.groups_of(KeyRange(start)), _GROUPS_AT_ONCE):
            low, high = footer.bounds[group]
            is_within = low >= start and (horizon is None or high < horizon)
            if (
                group in footer.mixed
                or not is_within
                or (groups and footer.group_bytes[group] > room)
            ):
                break
            groups.append(group)
            room -= footer.group_bytes[group]
        return groups

    def values_of(
        self, groups: Sequence[int], columns: Sequence[ColumnDef]
    ) -> tuple[pa.RecordBatch, bytes]:
        """The values of plain row groups (`plain_groups`), without keys, and their greatest key."""
        footer = self._footer()
        names = _names(footer, columns)[len(SYSTEM) :]
        rows = sum(footer.metadata.row_group(group).num_rows for group in groups)
        table = pa.table({OP: pa.array(np.full(rows, PUT, np.uint8))})
        if names:
            together = groups if 2 * len(names) >= len(footer.metadata.schema.names) else ()
            with self._open(footer, groups=together) as file:
                table = file.read_row_groups(list(groups), list(names), use_threads=False)
                table = table.append_column(OP, pa.array(np.full(rows, PUT, np.uint8)))
        values = conformed(table, pa.schema(value_fields(columns)))
        return whole_batch(values), footer.bounds[groups[-1]][1]

    def scan_as_written(self) -> Iterator[pa.Table]:
        """All rows with the columns that the file has, whatever columns the table has by now: what
        the checksum of its rows was taken of."""
        footer = self._footer()
        names = footer.metadata.schema.names
        groups = footer.groups_of(KeyRange())
        with self._open(footer, _stream_bytes(footer, len(names))) as file:
            schema = _written_schema(file.metadata)
            for rows, alike in _runs(footer, groups, SCAN):
                for batch in file.iter_batches(rows, alike, use_threads=False):
                    yield pa.Table.from_batches([batch]).cast(schema)

    def _footer(self) -> Footer:
        def read() -> Footer:
            with _reading(self):
                return read_footer(self._disk, self.path, self.entry)

        return self._cache.read(BlockKey(self.path, None), read)

    def _found(
        self, footer: Footer, group: int, names: Sequence[str], keys: Sequence[bytes], likely: int
    ) -> pa.RecordBatch | None:
        """The rows of those keys in a row group; None: there are none. Keys and values are two
        blocks of the cache. Where neither is there they are decoded together: a filter has said
        that a key is likely to be there."""
        together: list[pa.RecordBatch] = []

        def decode_all() -> pa.RecordBatch:
            together.append(self._decoded(footer, group, [*SYSTEM, *names]))
            return together[0].select(list(SYSTEM))

        def decode_values() -> pa.RecordBatch:
            return (together or [self._decoded(footer, group, names)])[0].select(list(names))

        system = self._cache.read(BlockKey(self.path, group, SYSTEM), decode_all)
        places = _places_of(keys, system)
        if not len(places):
            return None
        if not names:
            return _taken(system, places, likely)
        values = self._cache.read(BlockKey(self.path, group, tuple(names)), decode_values)
        arrays = [*_taken(system, places, likely).columns, *_taken(values, places, likely).columns]
        return pa.RecordBatch.from_arrays(arrays, [*SYSTEM, *names])

    def _decoded(self, footer: Footer, group: int, names: Sequence[str]) -> pa.RecordBatch:
        """The named columns of a row group."""
        with self._open(footer, groups=[group]) as file:
            table = file.read_row_group(group, columns=list(names), use_threads=False)
            return whole_batch(table)

    @contextmanager
    def _open(
        self, footer: Footer, stream_bytes: int = 0, groups: Sequence[int] = ()
    ) -> Iterator[pq.ParquetFile]:
        """Opens the Parquet file. *stream_bytes* of each column are read at a time; 0: all that a
        row group has of it. *groups* are neighbours that are read at once, unless they are large;
        with none, each part is read in its turn."""
        with (
            _reading(self),
            pq.ParquetFile(
                self._body(footer, groups),
                metadata=footer.metadata,
                buffer_size=stream_bytes,
                pre_buffer=False,
            ) as file,
        ):
            yield file

    def _body(self, footer: Footer, groups: Sequence[int]) -> CheckedBody | CheckedSpan:
        if groups:
            start, end = footer.starts[groups[0]], footer.starts[groups[-1] + 1]
            if end - start <= SPAN_BYTES_MAX:
                return CheckedSpan(self._disk, footer.body, start, end)
        return CheckedBody(self._disk, footer.body)


def whole_batch(table: pa.Table) -> pa.RecordBatch:
    """A table of one row at least."""
    (batch,) = table.combine_chunks().to_batches()
    return batch


def _places_of(keys: Sequence[bytes], block: pa.RecordBatch) -> Sequence[int]:
    """The places of the rows of those keys."""
    if len(keys) > FEW_KEYS:
        key_array = pa.array(keys, pa.binary())
        indices: Sequence[int] = pc.indices_nonzero(
            pc.is_in(block.column(KEY), value_set=key_array)
        )
        return indices
    places: list[int] = []
    for key in keys:
        first = row = rows_below(block, key)
        while row < block.num_rows and block.column(KEY)[row].as_py() == key:
            row += 1
        places.extend(range(first, row))
    return places


def _taken(block: pa.RecordBatch, places: Sequence[int], keys: int) -> pa.RecordBatch:
    """The rows there. A slice is cheaper than `take`, which copies, but keeps the whole block: only
    where few *keys* are looked up, each perhaps in a block of its own."""
    is_kept = len(places) == 1 and keys <= FEW_KEYS
    return block.slice(places[0], 1) if is_kept else block.take(places)


def _written_schema(metadata: pq.FileMetaData) -> pa.Schema:
    """The schema as Arrow had it: Parquet knows no seconds, and gives thousandths back."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(metadata.metadata[_ARROW_SCHEMA])))


def _names(footer: Footer, columns: Sequence[ColumnDef]) -> tuple[str, ...]:
    """The names under which the file has these columns, or the columns that they replace."""
    names = (column.name_in(footer.names) for column in columns)
    return tuple(dict.fromkeys([*SYSTEM, *filter(None, names)]))


def _runs(
    footer: Footer, groups: Iterator[int], at_once: PartSize
) -> Iterator[tuple[int, list[int]]]:
    """Neighbours whose rows are about as wide, and how many of those rows to read at once."""

    def rows_at_once(group: int) -> int:
        return max(min(at_once.bytes // footer.mean_row_bytes(group), at_once.rows), 1)

    while some := list(islice(groups, _GROUPS_AT_ONCE)):
        for _, run in groupby(some, key=lambda group: rows_at_once(group).bit_length()):
            alike = list(run)
            yield min(map(rows_at_once, alike)), alike


def _together(footer: Footer, groups: Iterator[int], at_once: PartSize) -> Iterator[Sequence[int]]:
    """Neighbours that are read together."""
    some: list[int] = []
    left = at_once
    for group in groups:
        rows, size = footer.metadata.row_group(group).num_rows, footer.group_bytes[group]
        if some and (size > left.bytes or rows > left.rows):
            yield some
            some, left = [], at_once
        some.append(group)
        left = PartSize(left.rows - rows, left.bytes - size)
    if some:
        yield some


def _stream_bytes(footer: Footer, columns: int) -> int:
    """A page of each column, unless a whole row group takes less."""
    return PAGE_BYTES if columns * PAGE_BYTES < max(footer.group_bytes) else 0


@contextmanager
def _reading(reader: FileReader) -> Iterator[None]:
    """Turns what can go wrong under Arrow into our errors."""
    try:
        with lost_if_missing(reader.root, reader.entry.name):
            yield
    except MemoryError as error:  # Arrow's too: the file may be sound
        reason = "there is no memory to decode it"
        raise Unavailable("not-ready", path=reader.path, reason=reason) from error
    except (pa.ArrowException, OSError) as error:
        raise Corrupt(path=reader.path, reason="the file cannot be decoded") from error
