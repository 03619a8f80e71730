"""A range of keys, and the rows of a sorted table that lie in it."""

from bisect import bisect_left
from dataclasses import dataclass

import pyarrow as pa

from dataplane.region.format.columns import KEY


@dataclass(frozen=True, slots=True)
class KeyRange:
    """`start` inclusive, `end` exclusive; None: to the last key."""

    start: bytes = b""
    end: bytes | None = None

    def overlaps(self, low: bytes, high: bytes) -> bool:
        """Whether a key of the closed range [low, high] can lie in this one."""
        return high >= self.start and (self.end is None or low < self.end)


def key_after(key: bytes) -> bytes:
    """The least key above `key`: where a scan that ended with `key` goes on."""
    return key + b"\x00"


BOUND_BYTES_MAX = 64
"""Bytes to which a file's bounds are shortened in manifests, orders and records of jobs."""


def lower_bound(key: bytes) -> bytes:
    """A short key at or below *key*: its first bytes."""
    return key[:BOUND_BYTES_MAX]


def upper_bound(key: bytes) -> bytes:
    """A short key at or above *key*; *key* itself if its first bytes are all 0xff."""
    if len(key) <= BOUND_BYTES_MAX:
        return key
    kept = key[:BOUND_BYTES_MAX].rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else key


def rows_below(table: pa.Table, key: bytes) -> int:
    """The number of rows whose key is lower than *key*, in a table sorted by key."""
    keys = table.column(KEY)
    return bisect_left(range(table.num_rows), key, key=lambda row: keys[row].as_py())


def cut_to_range(table: pa.Table, keys: KeyRange) -> pa.Table:
    start = rows_below(table, keys.start)
    end = table.num_rows if keys.end is None else rows_below(table, keys.end)
    return table.slice(start, max(end - start, 0))
