"""Decoded row groups in memory, least recently used first out, within a bound shared by regions."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa

CACHE_BYTES = 64 << 20  # a few hundred row groups of usual tables


class BlockKey(NamedTuple):
    """Which part of which file; files are immutable, so an entry is never stale."""

    path: str
    row_group: int
    columns: tuple[str, ...]


class BlockCache:
    """Safe for threads. Two readers may decode one block at once; the second wins."""

    def __init__(self, bytes_max: int = CACHE_BYTES) -> None:
        self._bytes_max = bytes_max
        self._blocks: OrderedDict[BlockKey, pa.Table] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def read(self, key: BlockKey, decode: Callable[[], pa.Table]) -> pa.Table:
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        table = decode()
        self._keep(key, table)
        return table

    def _keep(self, key: BlockKey, table: pa.Table) -> None:
        if table.nbytes > self._bytes_max:
            return
        with self._lock:
            replaced = self._blocks.pop(key, None)
            if replaced is not None:
                self.bytes -= replaced.nbytes
            self._blocks[key] = table
            self.bytes += table.nbytes
            while self.bytes > self._bytes_max:
                self.bytes -= self._blocks.popitem(last=False)[1].nbytes
