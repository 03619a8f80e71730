"""The footer of a region's Parquet file: its row groups, and what our own entries say of them.

Under `BLOCK_SUMS` it bears the crc32 of each block of the body, under `GROUP_BYTES` what each row
group takes in memory once decoded, which Parquet does not say, under `KEY_FILTERS` where the
filters of its keys are, and under `MIXED_GROUPS` which row groups are no plain ones: 4 bytes a
number, little-endian, in base64. The manifest bears the crc32 of the footer itself.
"""

import base64
import binascii
import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from dataplane.region.disk.disk import Disk
from dataplane.region.files.block_sums import FileBody
from dataplane.region.files.key_filter import Span, spans_of
from dataplane.region.format.columns import KEY
from dataplane.region.format.key_range import KeyRange
from dataplane.region.manifests.manifest import FileEntry
from metasrv_base.errors import Corrupt

BLOCK_SUMS = b"crc32_of_blocks_of_16384"
GROUP_BYTES = b"decoded_bytes_of_row_groups"
KEY_FILTERS = b"key_filters"
"""Row groups and bytes of each filter (`key_filter`); they end the body. Older files have none."""
MIXED_GROUPS = b"mixed_row_groups"
"""Numbers of row groups with a tombstone, or with a key that has another row in the file. Files
that lack the entry are taken to have no others."""
MEMORY_PER_BYTE = 14
"""The memory that a footer takes once Parquet has read it, by its bytes; measured."""

_HIGH = itemgetter(1)


@dataclass(frozen=True, slots=True)
class FilterSpan:
    """The place of a filter, and the least and greatest key of its row groups."""

    start: int
    end: int
    low: bytes
    high: bytes


class RowGroup(NamedTuple):
    """A row group, by number, and the least and greatest key in it."""

    number: int
    low: bytes
    high: bytes


@dataclass(frozen=True, slots=True)
class Footer:
    metadata: pq.FileMetaData
    names: frozenset[str]
    """The columns of the file."""
    body: FileBody
    bounds: tuple[tuple[bytes, bytes], ...]
    """The least and greatest key of each row group."""
    starts: Sequence[int]
    """Offsets at which each row group begins, and behind them where the last ends."""
    group_bytes: Sequence[int]
    mixed: frozenset[int]
    """Row groups that need a merge; the others are plain: each row is a put of a key of its own."""
    spans: tuple[FilterSpan, ...]
    """Filter spans by key, with all row groups; none: the file has no filters."""
    nbytes: int
    """Its approximate size in memory."""

    def groups_of(self, keys: KeyRange) -> Iterator[int]:
        """Numbers of the row groups that may have keys of the range, one by one."""
        for group in range(self._first(keys.start), len(self.bounds)):
            if not keys.overlaps(*self.bounds[group]):
                return
            yield group

    def group_at(self, start: bytes) -> RowGroup | None:
        """The first with keys from *start* on; None: there is none."""
        number = self._first(start)
        return RowGroup(number, *self.bounds[number]) if number < len(self.bounds) else None

    def groups_with(self, keys: Sequence[bytes]) -> Iterator[tuple[int, Sequence[bytes]]]:
        """Row groups that may have some of *keys*, which are sorted, and those keys. The rows of
        one key may stand in several."""
        group = start = 0
        while start < len(keys) and (group := self._first(keys[start], group)) < len(self.bounds):
            low, high = self.bounds[group]
            some = keys[bisect_left(keys, low, start) : bisect_right(keys, high, start)]
            if some:
                yield group, some
            start, group = bisect_left(keys, high, start), group + 1

    def _first(self, start: bytes, group: int = 0) -> int:
        """The number of the first row group from *group* on that ends at or above *start*."""
        return bisect_left(self.bounds, start, lo=group, key=_HIGH)

    def spans_of(self, low: bytes, high: bytes) -> Iterator[tuple[int, FilterSpan]]:
        """The spans that may have keys from *low* to *high*, both included, with their numbers."""
        first = bisect_left(self.spans, low, key=lambda span: span.high)
        for number, span in enumerate(self.spans[first:], first):
            if span.low > high:
                return
            yield number, span

    @property
    def largest_row_bytes(self) -> int:
        """About: the mean of the row group with the largest rows."""
        return max(map(self.mean_row_bytes, range(len(self.bounds))))

    def mean_row_bytes(self, group: int) -> int:
        """The mean size of a row of the group, decoded, with all columns; at least 1."""
        rows: int = self.metadata.row_group(group).num_rows
        return max(self.group_bytes[group] // rows, 1)


def encode_numbers(numbers: Sequence[int]) -> bytes:
    packed = array("I", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return base64.b64encode(packed.tobytes())


def read_footer(disk: Disk, path: str, entry: FileEntry) -> Footer:
    """Raises Corrupt if it is not what was written, and what the disk raises."""
    body_bytes = entry.bytes - entry.footer_bytes
    data = disk.read(path, body_bytes, entry.footer_bytes)
    if f"{zlib.crc32(data):08x}" != entry.footer_crc32:
        raise Corrupt(path=path, reason="the footer's checksum is wrong")
    metadata = pq.read_metadata(pa.BufferReader(data))
    ours = metadata.metadata or {}
    spans = spans_of(_numbers(ours, KEY_FILTERS, path)) if KEY_FILTERS in ours else ()
    bounds = tuple(_bounds(metadata, entry))
    mixed = _numbers(ours, MIXED_GROUPS, path) if MIXED_GROUPS in ours else range(len(bounds))
    groups_end = body_bytes - sum(span.bytes for span in spans)
    return Footer(
        metadata,
        frozenset(metadata.schema.names),
        FileBody(path, body_bytes, _numbers(ours, BLOCK_SUMS, path)),
        bounds,
        array("Q", [*_starts(metadata), groups_end]),
        _numbers(ours, GROUP_BYTES, path),
        frozenset(mixed),
        tuple(_filter_spans(spans, bounds, groups_end)),
        len(data) * MEMORY_PER_BYTE,
    )


def _filter_spans(
    spans: Sequence[Span], bounds: Sequence[tuple[bytes, bytes]], offset: int
) -> Iterator[FilterSpan]:
    first = 0
    for span in spans:
        last = first + span.groups - 1
        yield FilterSpan(offset, offset + span.bytes, bounds[first][0], bounds[last][1])
        offset, first = offset + span.bytes, last + 1


def _numbers(ours: Mapping[bytes, bytes], name: bytes, path: str) -> Sequence[int]:
    packed = array("I")
    try:
        packed.frombytes(base64.b64decode(ours[name], validate=True))
    except (KeyError, ValueError, binascii.Error) as error:
        raise Corrupt(path=path, reason="the footer lacks an entry", name=name.decode()) from error
    if sys.byteorder == "big":
        packed.byteswap()
    return packed


def _starts(metadata: pq.FileMetaData) -> Iterator[int]:
    for group in range(metadata.num_row_groups):
        first = metadata.row_group(group).column(0)
        yield min(first.data_page_offset, first.dictionary_page_offset or first.data_page_offset)


def _bounds(metadata: pq.FileMetaData, entry: FileEntry) -> Iterator[tuple[bytes, bytes]]:
    """The file's own least and greatest key where a row group does not say."""
    whole = bytes.fromhex(entry.min_key), bytes.fromhex(entry.max_key)
    key_column = metadata.schema.names.index(KEY)
    for group in range(metadata.num_row_groups):
        stats = metadata.row_group(group).column(key_column).statistics
        has_bounds = stats is not None and stats.has_min_max
        yield (stats.min, stats.max) if has_bounds else whole
