"""Checksums of a file's blocks, so that whatever part of it is read is checked when it is read.

A Parquet file is its body (row groups), then its footer. The footer bears the crc32 of each block
of 16 KiB of the body (`footer`), the manifest the crc32 of the footer. So no byte is believed that
was not checked, and opening a region reads no file.
"""

import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from base.errors import Corrupt
from dataplane.region.disk import Disk

BLOCK_BYTES = 16 << 10


def sums_of(data: bytes | memoryview) -> list[int]:
    return [
        zlib.crc32(data[start : start + BLOCK_BYTES]) for start in range(0, len(data), BLOCK_BYTES)
    ]


@dataclass(frozen=True, slots=True)
class Body:
    """The part of a file before its footer, and what it must be."""

    path: str
    bytes: int
    sums: Sequence[int]


class CheckedBody(io.RawIOBase):
    """A body as Arrow wants to see it. Not shared between threads.

    Raises Corrupt, inside what Arrow makes of it, when a block is not what was written.
    """

    def __init__(self, disk: Disk, body: Body) -> None:
        self._disk = disk
        self._body = body
        self._at = 0
        self._last: tuple[int, bytes] = (-1, b"")
        """The last block that was read, by number: the next read mostly begins in it."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._body.bytes}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        rest = max(self._body.bytes - self._at, 0)
        wanted = rest if size < 0 else min(size, rest)
        if wanted == 0:
            return b""
        first, end = self._at // BLOCK_BYTES, -(-(self._at + wanted) // BLOCK_BYTES)
        data = self._blocks(first, end)
        skipped = self._at - first * BLOCK_BYTES
        self._at += wanted
        return data[skipped : skipped + wanted]

    def _blocks(self, first: int, end: int) -> bytes:
        """From block *first* up to block *end*."""
        number, known = self._last
        if first == number:
            return known if end == first + 1 else known + self._blocks(first + 1, end)
        start, stop = first * BLOCK_BYTES, min(end * BLOCK_BYTES, self._body.bytes)
        data = self._disk.read(self._body.path, start, stop - start)
        if len(data) != stop - start or sums_of(data) != list(self._body.sums[first:end]):
            raise Corrupt(path=self._body.path, offset=start, reason="a block's checksum is wrong")
        self._last = (end - 1, data[(end - 1) * BLOCK_BYTES - start :])
        return data
