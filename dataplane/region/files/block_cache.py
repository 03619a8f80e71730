"""Footers and decoded row groups in memory, the least recently used out first, within a bound
that all regions share.

A footer that is larger than the bound is kept beside the rest, one at a time: each page of a scan
needs it, and would read it anew. Its bytes are told to whoever counts the node's memory.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol, TypeVar, cast

_BLOCK_BYTES = 1_000  # measured: of a block beside its rows
_COLUMN_BYTES = 1_000  # measured: array, buffers and their owners of one column of a block
CACHE_BYTES = 64 << 20  # a few hundred row groups of usual tables


class BlockKey(NamedTuple):
    """A part of a file. Files are immutable, so an entry is never stale."""

    path: str
    row_group: int | None
    """The row group; None for the footer."""
    columns: tuple[str, ...] = ()


class Block(Protocol):
    @property
    def nbytes(self) -> int: ...


B = TypeVar("B", bound=Block)


class NotResidentError(Exception):
    """A block would have to be read from the disk."""


class Blocks(Protocol):
    def read(self, key: BlockKey, decode: Callable[[], B]) -> B:
        """The block that *decode* returns for *key*, now or earlier: always the same type."""
        ...


def _uncounted(size: int) -> None:
    """Counts nothing."""


class BlockCache:
    """Safe for threads. Two readers may decode one block at once; the second wins."""

    def __init__(
        self, bytes_max: int = CACHE_BYTES, count_beyond: Callable[[int], None] = _uncounted
    ) -> None:
        """Caches nothing yet. *count_beyond* is told the bytes of the footer that is kept beyond
        *bytes_max*; 0: none."""
        self._bytes_max = bytes_max
        self._count_beyond = count_beyond
        self._large: tuple[BlockKey, Block] | None = None
        self._blocks: OrderedDict[BlockKey, Block] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def read(self, key: BlockKey, decode: Callable[[], B]) -> B:
        block = self._known(key)
        if block is None:
            block = decode()
            self._keep(key, block)
        return cast(B, block)

    def _known(self, key: BlockKey) -> Block | None:
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
            elif self._large is not None and self._large[0] == key:
                return self._large[1]
            return self._blocks.get(key)

    def forget_large(self, paths: Collection[str]) -> None:
        """Lets a footer of one of these files go, which no reader needs any more."""
        with self._lock:
            if self._large is not None and self._large[0].path in paths:
                self._large = None
                self._count_beyond(0)

    def _keep(self, key: BlockKey, block: Block) -> None:
        size = _taken(key, block)
        if size > self._bytes_max:
            if key.row_group is None:
                with self._lock:
                    self._large = key, block
                    self._count_beyond(size)
            return
        with self._lock:
            replaced = self._blocks.pop(key, None)
            if replaced is not None:
                self.bytes -= _taken(key, replaced)
            self._blocks[key] = block
            self.bytes += size
            while self.bytes > self._bytes_max:
                self.bytes -= _taken(*self._blocks.popitem(last=False))


def _taken(key: BlockKey, block: Block) -> int:
    return block.nbytes + _BLOCK_BYTES + _COLUMN_BYTES * len(key.columns)


class ResidentBlocks:
    """A cache for whoever must not wait for a disk."""

    def __init__(self, cache: BlockCache) -> None:
        self._cache = cache

    def read(self, key: BlockKey, decode: Callable[[], B]) -> B:
        """Raises NotResidentError where *decode* would be called."""

        def refuse() -> B:
            raise NotResidentError

        return self._cache.read(key, refuse)
